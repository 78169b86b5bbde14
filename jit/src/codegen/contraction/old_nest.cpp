// The old nest: where it runs, and where it is deleted.
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include "codegen/contraction/recognize.h"
#include "codegen/contraction/writer.h"
#include "codegen/loops.h"
#include "codegen/stop_word.h"

namespace halyard::jit::contraction {

using llvm::BasicBlock;
using llvm::Loop;
using llvm::PHINode;
using llvm::Value;

// If the work must stop, the old nest goes on with the row `next`: it leaves compiled code after that row.
// Nests that were written together begin again, and leave compiled code where they check the stop word.
void Writer::check_stop_word(Value* next) {
  BasicBlock* const go_on = new_block("contraction.row");
  BasicBlock* const stopped = new_block("contraction.stop");
  branch_unless_stopped(b_, go_on, stopped);
  stops_.emplace_back(next, stopped);
  b_.SetInsertPoint(go_on);
}

// The old nest runs if the new one may not, or must stop.
void Writer::keep_old_nest(Value* is_new, BasicBlock* start, BasicBlock* end) {
  Loop* const rows = nest_.outermost();
  BasicBlock* const resume = new_block("contraction.old");
  b_.SetInsertPoint(resume);
  PHINode* const first = b_.CreatePHI(b_.getInt64Ty(), 2, "row");
  first->addIncoming(b_.getInt64(0), before_);
  for (PHINode& phi : rows->getHeader()->phis()) {
    phi.setIncomingValueForBlock(before_, advanced(phi, phi.getIncomingValueForBlock(before_), first));
    phi.replaceIncomingBlockWith(before_, resume);
  }
  b_.CreateBr(rows->getHeader());
  const auto to_after = [&](BasicBlock* from) {
    for (PHINode& phi : after_->phis())
      phi.addIncoming(phi.getIncomingValueForBlock(rows->getLoopLatch()), from);
  };
  to_after(end);
  for (const auto& [row, block] : stops_) {
    b_.SetInsertPoint(block);
    b_.CreateCondBr(b_.CreateICmpEQ(row, row_end_), after_, resume);
    first->addIncoming(row, block);
    to_after(block);
  }
  before_->getTerminator()->eraseFromParent();
  b_.SetInsertPoint(before_);
  b_.CreateCondBr(is_new, start, resume);
  leave_as_it_is(*rows);
}

// The old nests run one after the other if the new one may not, or must stop.
void Writer::keep_old_nests(Value* is_new, BasicBlock* start, BasicBlock* end) {
  BasicBlock* const header = nest_.first()->getHeader();
  BasicBlock* const from_start = new_block("contraction.old");
  header->replacePhiUsesWith(before_, from_start);
  b_.SetInsertPoint(from_start);
  b_.CreateBr(header);
  for (const auto& [row, block] : stops_) {
    b_.SetInsertPoint(block);
    b_.CreateCondBr(b_.CreateICmpEQ(row, row_end_), end, from_start);
  }
  for (PHINode& phi : after_->phis())
    phi.addIncoming(phi.getIncomingValueForBlock(nest_.last_loop()->getLoopLatch()), end);
  b_.SetInsertPoint(end->getTerminator());
  for (llvm::CallInst* const release : nest_.releases) b_.Insert(release->clone());
  before_->getTerminator()->eraseFromParent();
  b_.SetInsertPoint(before_);
  b_.CreateCondBr(is_new, start, from_start);
  for (Loop* const loop : {nest_.first(), nest_.loops.back(), nest_.last_loop()})
    llvm::addStringMetadataToLoop(loop, kSeparate, 1);
}

void Writer::delete_old_nest(Value* entered, BasicBlock* start) {
  for (PHINode& phi : llvm::make_early_inc_range(after_->phis())) {
    phi.replaceAllUsesWith(phi.getIncomingValue(0));
    phi.eraseFromParent();
  }
  before_->getTerminator()->eraseFromParent();
  b_.SetInsertPoint(before_);
  b_.CreateCondBr(entered, start, after_);
  llvm::SmallVector<BasicBlock*, 16> old(nest_.outermost()->blocks());
  evolution_.forgetLoop(nest_.outermost());
  llvm::DeleteDeadBlocks(old);
}

}  // namespace halyard::jit::contraction
