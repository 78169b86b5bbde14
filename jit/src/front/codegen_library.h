// The code generator, halyard-jit-llvm-codegen.so beside this library. It holds LLVM, which takes longer to
// load than most functions take to run: it is opened when something is to be compiled that is not in the
// cache.
#pragma once

#include <string>

#include "base/status.h"
#include "shared/codegen_abi.h"

namespace halyard::jit {

class CodegenLibrary {
 public:
  // The one of this installation. Any thread.
  static const CodegenLibrary& get();

  // Which build it is, from its file; empty: not known.
  const std::string& build_id() const { return build_id_; }
  // Opens it, once. UNAVAILABLE: it cannot be loaded; INCOMPATIBLE: it is of another build. Any thread.
  Result<const halyard_jit_codegen_t*> open() const;

 private:
  CodegenLibrary();

  std::string path_;
  std::string build_id_;
};

}  // namespace halyard::jit
