// Translates decoded code to LLVM IR, word by word.
#pragma once

#include <llvm/IR/Module.h>

#include "vm/decode/jit_abi.h"

namespace halyard::jit {

// Metadata of branches that leave compiled code: kCheck if an access would be out of range, kStop if the work
// must stop. The first target of both is the path that stays in compiled code.
inline constexpr char kCheck[] = "halyard.check";
inline constexpr char kStop[] = "halyard.stop";
// Metadata of loads that read a buffer of the function's own for the last time (OwnBuffers::is_last_read).
inline constexpr char kLastRead[] = "halyard.last_read";

// Metadata of stores to buffers: the number of the register, if it is tracked (OwnBuffers::is_tracked).
inline constexpr char kStoredRegister[] = "halyard.stored_register";

inline constexpr char kFunction[] = "halyard_run";

// Adds the function to the module as kFunction, with the type halyard_jit_run_fn, for a processor with these
// features.
void translate(const halyard_jit_function_t& function, llvm::Module& module, llvm::StringRef features);

}  // namespace halyard::jit
