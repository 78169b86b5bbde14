// Values available before loops, and duplication of loops.
#include "codegen/loops.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>

namespace halyard::jit {

namespace {

// Keeps LLVM from vectorizing these loops.
constexpr const char* kIsVectorized = "llvm.loop.isvectorized";

}  // namespace

std::optional<uint64_t> constant_of(const llvm::SCEV* value) {
  const auto* const constant = llvm::dyn_cast_or_null<llvm::SCEVConstant>(value);
  if (!constant || constant->getAPInt().getActiveBits() > 64) return {};
  return constant->getAPInt().getZExtValue();
}

bool is_known_before(const llvm::SCEV* value, const llvm::Loop* loop, llvm::ScalarEvolution& evolution,
                     const llvm::SCEVExpander& expander) {
  return evolution.isAvailableAtLoopEntry(value, loop) &&
         expander.isSafeToExpandAt(value, loop->getLoopPreheader()->getTerminator());
}

uint64_t weight_of(const llvm::Loop& loop) {
  constexpr uint64_t kSimple = 64, kLong = 16;
  const auto takes_long = [](const llvm::Instruction& each) {
    if (const auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&each))
      return intrinsic->getIntrinsicID() == llvm::Intrinsic::sqrt;
    const unsigned op = each.getOpcode();
    return op == llvm::Instruction::Call || op == llvm::Instruction::FDiv || op == llvm::Instruction::FRem ||
           llvm::Instruction::isIntDivRem(op);
  };
  uint64_t sum = 0;
  for (const llvm::BasicBlock* const block : loop.blocks())
    for (const llvm::Instruction& each : *block) sum += takes_long(each) ? kLong : 1;
  return std::max<uint64_t>(sum / kSimple, 1);
}

Fork fork_loop(llvm::Loop& loop, llvm::Value* condition, const char* mark, llvm::LoopInfo& loops,
               llvm::DominatorTree& dominators) {
  llvm::BasicBlock* const before = loop.getLoopPreheader();
  llvm::BasicBlock* const start = llvm::SplitBlock(before, before->getTerminator(), &dominators, &loops);
  llvm::ValueToValueMapTy copies;
  llvm::SmallVector<llvm::BasicBlock*, 32> copied;
  llvm::Loop* const copy =
      llvm::cloneLoopWithPreheader(start, before, &loop, copies, ".copy", &loops, &dominators, copied);
  llvm::remapInstructionsInBlocks(copied, copies);
  for (llvm::Loop* inner : copy->getLoopsInPreorder()) llvm::addStringMetadataToLoop(inner, mark, 1);
  leave_as_it_is(*copy);
  llvm::SmallVector<llvm::BasicBlock*, 16> exits;
  loop.getUniqueExitBlocks(exits);
  for (llvm::BasicBlock* exit : exits) {
    for (llvm::PHINode& phi : exit->phis()) {
      const unsigned incoming = phi.getNumIncomingValues();
      for (unsigned i = 0; i < incoming; ++i) {
        const auto from = copies.find(phi.getIncomingBlock(i));
        if (from == copies.end()) continue;
        const auto value = copies.find(phi.getIncomingValue(i));
        phi.addIncoming(
            value == copies.end() ? phi.getIncomingValue(i) : static_cast<llvm::Value*>(value->second),
            llvm::cast<llvm::BasicBlock>(static_cast<llvm::Value*>(from->second)));
      }
    }
  }
  before->getTerminator()->eraseFromParent();
  llvm::BranchInst::Create(start, copy->getLoopPreheader(), condition, before)
      ->setMetadata(llvm::LLVMContext::MD_prof,
                    llvm::MDBuilder(before->getContext()).createBranchWeights(1u << 20, 1));
  return {start, copy};
}

void leave_as_it_is(llvm::Loop& loop) {
  for (llvm::Loop* inner : loop.getLoopsInPreorder()) {
    llvm::addStringMetadataToLoop(inner, kIsVectorized, 1);
    llvm::addStringMetadataToLoop(inner, "llvm.loop.unroll.disable", 1);
  }
}

bool is_left_as_it_is(const llvm::Loop& loop) { return llvm::getBooleanLoopAttribute(&loop, kIsVectorized); }

}  // namespace halyard::jit
