// The stop word: the third argument of a compiled function points at it.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace halyard::jit {

// Whether the work may continue: the stop word is 0. `b` inserts into the compiled function.
llvm::Value* may_continue(llvm::IRBuilderBase& b);

// Ends the block with a check of the stop word.
void branch_unless_stopped(llvm::IRBuilderBase& b, llvm::BasicBlock* next, llvm::BasicBlock* stopped);

}  // namespace halyard::jit
