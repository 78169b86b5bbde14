// exp, tanh and erf of f32 as code, from the functions that the interpreter calls: the same bits.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "vm/format/opcodes.h"

namespace halyard::jit {

// The result of exp_f32, tanh_f32 or erf_f32 for this f32. Null for other instructions.
llvm::Value* emit_elementary(llvm::IRBuilder<>& builder, vm::Op op, llvm::Value* x);

}  // namespace halyard::jit
