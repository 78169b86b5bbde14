// The stop word: the third argument of a compiled function points at it.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace halyard::jit {

// Whether the work may continue: the stop word is 0. `b` inserts into the compiled function.
inline llvm::Value* may_continue(llvm::IRBuilderBase& b) {
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::LoadInst* const stop = b.CreateAlignedLoad(b.getInt32Ty(), function->getArg(2), llvm::Align(4));
  stop->setAtomic(llvm::AtomicOrdering::Monotonic);
  return b.CreateIsNull(stop);
}

}  // namespace halyard::jit
