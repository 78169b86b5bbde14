// From decoded code to LLVM's intermediate representation, one word after another.
#pragma once

#include <llvm/IR/Module.h>

#include "vm/decode/jit_abi.h"

namespace halyard::jit {

// Names of metadata. A branch that leaves compiled code where an access would be out of range, and one that
// leaves it where the work is to stop. What is wanted is the first target of both.
inline constexpr char kCheck[] = "halyard.check";
inline constexpr char kStop[] = "halyard.stop";

inline constexpr char kFunction[] = "halyard_run";

// Puts the function into the module as kFunction, with the type halyard_jit_run_fn, for a processor with
// these features.
void translate(const halyard_jit_function_t& function, llvm::Module& module, llvm::StringRef features);

}  // namespace halyard::jit
