// Functions of f32 as code for fast math, in f32: results are up to 4 units in the last place from those of
// elementary.h, and have their infinities, NaNs and signed zeros.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "vm/format/opcodes.h"

namespace halyard::jit {

// exp, exp2, tanh and erf of `x`, an f32. Null for other instructions.
llvm::Value* emit_fast_elementary(llvm::IRBuilder<>& builder, vm::Op op, llvm::Value* x);

}  // namespace halyard::jit
