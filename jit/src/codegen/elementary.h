// Functions of f32 as code, from the templates with which the interpreter computes them: the same bits.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "vm/format/opcodes.h"

namespace halyard::jit {

// The result of an instruction of vm/elementary/functions.inc for these f32. Null for other instructions.
llvm::Value* emit_elementary(llvm::IRBuilder<>& builder, vm::Op op, llvm::ArrayRef<llvm::Value*> arguments);

}  // namespace halyard::jit
