// The load is atomic: another thread sets the word.
#include "codegen/stop_word.h"

#include <llvm/IR/MDBuilder.h>

#include "codegen/translate.h"

namespace halyard::jit {

llvm::Value* may_continue(llvm::IRBuilderBase& b) {
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::LoadInst* const stop = b.CreateAlignedLoad(b.getInt32Ty(), function->getArg(2), llvm::Align(4));
  stop->setAtomic(llvm::AtomicOrdering::Monotonic);
  return b.CreateIsNull(stop);
}

void branch_unless_stopped(llvm::IRBuilderBase& b, llvm::BasicBlock* next, llvm::BasicBlock* stopped) {
  llvm::MDNode* const likely = llvm::MDBuilder(b.getContext()).createBranchWeights(1u << 20, 1);
  b.CreateCondBr(may_continue(b), next, stopped, likely)
      ->setMetadata(kStop, llvm::MDNode::get(b.getContext(), {}));
}

}  // namespace halyard::jit
