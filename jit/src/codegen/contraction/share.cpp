// The groups of rows as pieces that several threads may run: a function of its own runs some groups, one
// after the other, and packs B once for them. If the host has other threads, it calls the function; otherwise
// the loop over the groups does, for as many groups as may run between two checks of the stop word.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/CodeExtractor.h>

#include <cassert>
#include <cstddef>

#include "codegen/contraction/tile_loops.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit::contraction {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

// The first row of a group, or the number of rows.
Value* Writer::first_row(Value* group) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateNUWMul(group, group_), row_end_);
}

// Each thread has panels of its own.
llvm::AllocaInst* Writer::shared_panel_memory(uint64_t bytes) {
  llvm::AllocaInst* const memory = b_.CreateAlloca(b_.getInt8Ty(), b_.getInt64(bytes));
  memory->setAlignment(llvm::Align(64));
  return memory;
}

void Writer::share_groups() {
  Value* const one = b_.getInt64(1);
  Value* const groups = b_.CreateAdd(b_.CreateUDiv(b_.CreateSub(row_end_, one), group_), one);
  // Without checks of the stop word all groups may run together.
  Value* const together =
      nest_.may_stop_between_rows()
          ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, b_.CreateUDiv(rows_between_stops(), group_), one)
          : groups;
  BasicBlock* const before = b_.GetInsertBlock();
  BasicBlock* const with_others = new_block("contraction.shared");
  BasicBlock* const alone = new_block("contraction.alone");
  Value* const sharing =
      b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), function_.getArg(4),
                                                                 offsetof(halyard_jit_stack_t, sharing)));
  b_.CreateCondBr(b_.CreateAnd(b_.CreateIsNotNull(sharing), b_.CreateICmpUGT(groups, one)), with_others,
                  alone);

  pieces_.emplace();
  pieces_->before = before;
  b_.SetInsertPoint(alone);
  BasicBlock* const next = new_block("contraction.groups");
  BasicBlock* const done = new_block("contraction.done");
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  llvm::PHINode* const first = b_.CreatePHI(b_.getInt64Ty(), 2, "first");
  first->addIncoming(b_.getInt64(0), alone);
  Value* const last =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateNUWAdd(first, together), groups);
  pieces_->first = first;
  pieces_->last = last;
  pieces_->begin = new_block("contraction.piece");
  b_.CreateBr(pieces_->begin);
  b_.SetInsertPoint(pieces_->begin);
  // The first values that are used, and so the first arguments.
  b_.CreateAssumption(b_.CreateICmpULT(first, last));
  Value* const begin = first_row(first);
  Value* const end = first_row(last);
  if (tiling_.is_packed) add_panels();
  write_rows(begin, end);
  pieces_->end = new_block("contraction.piece.end");
  b_.CreateBr(pieces_->end);
  b_.SetInsertPoint(pieces_->end);
  if (nest_.may_stop_between_rows()) check_stop_word(first_row(last));
  first->addIncoming(last, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpEQ(last, groups), done, next);

  b_.SetInsertPoint(with_others);
  prefetch_pages(sharing);
  static_assert(offsetof(halyard_jit_sharing_t, share) == 0);
  llvm::PointerType* const pointer = b_.getPtrTy();
  Value* const none = llvm::ConstantPointerNull::get(pointer);  // outline_pieces() replaces it
  llvm::FunctionType* const type = llvm::FunctionType::get(
      b_.getInt64Ty(), {pointer, b_.getInt64Ty(), b_.getInt64Ty(), pointer, pointer, pointer}, false);
  Value* const stop = nest_.may_stop_between_rows() ? static_cast<Value*>(function_.getArg(2))
                                                    : none;  // without one all groups run
  pieces_->share =
      b_.CreateCall(type, b_.CreateLoad(pointer, sharing), {sharing, groups, together, none, none, stop});
  if (nest_.may_stop_between_rows()) {
    BasicBlock* const stopped = new_block("contraction.stop");
    stops_.emplace_back(first_row(pieces_->share), stopped);
    b_.CreateCondBr(b_.CreateICmpEQ(pieces_->share, groups), done, stopped);
  } else {
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
}

// Makes a function of the part that runs some groups. Its values of the nest are in a structure, which is
// filled before the first group.
void Writer::outline_pieces() {
  llvm::SmallVector<BasicBlock*, 64> blocks;
  for (auto block = pieces_->begin->getIterator(); &*block != pieces_->end; ++block)
    blocks.push_back(&*block);
  const llvm::CodeExtractorAnalysisCache cache(function_);
  llvm::CodeExtractor extractor(blocks, /*DT=*/nullptr, /*AggregateArgs=*/true, nullptr, nullptr, nullptr,
                                /*AllowVarArgs=*/false, /*AllowAlloca=*/true);
  extractor.excludeArgFromAggregate(pieces_->first);
  extractor.excludeArgFromAggregate(pieces_->last);
  llvm::Function* const body = extractor.extractCodeRegion(cache);
  auto* const call = llvm::cast<llvm::CallInst>(*body->user_begin());
  for (Instruction& instruction : llvm::make_early_inc_range(*call->getParent())) {
    if (auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
      if (intrinsic->isLifetimeStartOrEnd()) intrinsic->eraseFromParent();
    } else if (&instruction != call && !instruction.isTerminator()) {
      instruction.moveBefore(pieces_->before->getTerminator());
    }
  }
  pieces_->share->setArgOperand(3, body);
  assert(call->getArgOperand(0) == pieces_->first && call->getArgOperand(1) == pieces_->last);
  pieces_->share->setArgOperand(4, call->getArgOperand(2));
  BasicBlock& entry = body->getEntryBlock();
  for (BasicBlock& block : *body) {
    for (Instruction& instruction : llvm::make_early_inc_range(block)) {
      if (!llvm::isa<llvm::AllocaInst>(instruction) || &block == &entry) continue;
      instruction.moveBefore(&*entry.getFirstInsertionPt());
      body->addFnAttr("probe-stack", "inline-asm");  // it is larger than a guard page
    }
  }
}

}  // namespace halyard::jit::contraction
