// Compiler: the library that compiles functions, halyard-jit-llvm.so, in the parent folder of the drivers. It
// is opened when a function is first to be compiled, and never closed. When a function is not in the cache,
// it opens halyard-jit-llvm-codegen.so, beside it, which contains LLVM.
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
  // Opens the compiler of the installation to which this code belongs; searches only once. NOT_FOUND: none;
  // the message names the places searched. UNAVAILABLE: it cannot be loaded; INCOMPATIBLE: it belongs to
  // another build; INVALID_ARGUMENT: its file is damaged. Any thread.
  static Result<const Compiler*> find();

  struct Description {
    std::string name;  // with its version, for display
    std::string path;
  };
  // Reads the library's ELF note, without running its code or loading LLVM; searches only once. NOT_FOUND
  // (also if there is no code generator), INCOMPATIBLE: as for find(); INVALID_ARGUMENT: the file is damaged.
  // Any thread.
  static Result<const Description*> describe();

  // Counters of this process, for all libraries that contain the VM; zero if no compiler is loaded.
  // Thread-safe.
  static halyard_jit_stats_t stats();

  struct Options {
    std::string cache = {};  // folder for compiled objects; empty: none
    bool fast_math = false;  // may reorder sums of floats and use vector math
    bool cached_only = false;
  };
  // `code` must be decoded with entries. UNIMPLEMENTED: the compiler does not support the function, or with
  // `cached_only` the cache does not have it; the message has the reason. Thread-safe.
  Result<CompiledFunction> compile(const FunctionCode& code, const Options& options) const;

  struct Explanation {
    std::string ir;        // LLVM IR after all passes
    std::string assembly;  // for this processor
  };
  // Explains what compile() would produce with exact math; keeps no code. Same statuses. Thread-safe.
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
