// Compiler: the library that compiles functions, halyard-jit-llvm.so, opened when something is first to be
// compiled. It lies in the folder above the drivers' and is never closed. halyard-jit-llvm-codegen.so, with
// LLVM, lies beside it, and is opened by it when something is not in the cache.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "vm/compile/jit_explain.h"
#include "vm/decode/code.h"
#include "vm/decode/compiled_function.h"

namespace halyard::vm {

class Compiler {
 public:
  // The one of the installation that this code is part of; looked for once. NOT_FOUND: there is none, with
  // the places that were looked at; UNAVAILABLE: it cannot be loaded; INCOMPATIBLE: it is of another build;
  // INVALID_ARGUMENT: its file is damaged. Any thread.
  static Result<const Compiler*> find();

  struct Description {
    std::string name;  // with its version, for people
    std::string path;
  };
  // What the note of that library says; nothing of it runs, and LLVM is not loaded. Looked for once.
  // NOT_FOUND (also where there is no code generator) and INCOMPATIBLE as from find(); INVALID_ARGUMENT: the
  // file is damaged. Any thread.
  static Result<const Description*> describe();

  // Counters of this process, for all libraries that contain the VM; zero if no compiler is loaded.
  // Thread-safe.
  static halyard_jit_stats_t stats();

  struct Options {
    std::string cache = {};  // a folder for compiled objects; empty: none
    bool fast_math = false;  // sums of floats may be reordered, and vector math used
  };
  // `code` must be decoded with entries. UNIMPLEMENTED: the compiler does not support the function; the
  // message says why. Thread-safe.
  Result<CompiledFunction> compile(const FunctionCode& code, const Options& options) const;

  struct Explanation {
    std::string ir;        // LLVM's representation, after all passes
    std::string assembly;  // for this processor
  };
  // What compile() would make of it, with exact math; keeps no code. The same statuses. Thread-safe.
  Result<Explanation> explain(const FunctionCode& code) const;

 private:
  static Result<Description> look_for();
  static Result<Compiler> open(const std::string& path);

  const halyard_jit_table_t* table_ = nullptr;
  halyard_jit_explain_fn explain_ = nullptr;
};

// Whether compiled code of this function may call itself without the interpreter. `code` must be decoded with
// entries.
bool calls_itself(const FunctionCode& code);

}  // namespace halyard::vm
