// The code generator, halyard-jit-llvm-codegen.so beside this library. It contains LLVM, which takes longer
// to load than most functions take to run. So it is opened only when a function that is not in the cache must
// be compiled.
#pragma once

#include <string>

#include "base/status.h"
#include "shared/codegen_abi.h"

namespace halyard::jit {

class CodegenLibrary {
 public:
  // The code generator of this installation. Any thread.
  static const CodegenLibrary& get();

  // The build id in its file; empty if unknown.
  const std::string& build_id() const { return build_id_; }
  // Opens it, once. UNAVAILABLE: it cannot be loaded; INCOMPATIBLE: it is of another build. Any thread.
  Result<const halyard_jit_codegen_t*> open() const;

 private:
  CodegenLibrary();

  std::string path_;
  std::string build_id_;
};

}  // namespace halyard::jit
