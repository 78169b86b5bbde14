// The inner loop runs as often as both did together, in the first iteration of the outer one, which ends
// then. The order of all accesses stays the same.
#include "codegen/merge_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include "codegen/loops.h"

namespace halyard::jit {

namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::PHINode;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;
using llvm::Value;

constexpr uint64_t kMaxInner = 64;  // iterations of an inner loop; longer ones have vectors anyway

class Merger {
 public:
  Merger(Loop& inner, llvm::ScalarEvolution& evolution)
      : inner_(inner), outer_(*inner.getParentLoop()), evolution_(evolution) {}

  bool merge() {
    if (!has_form() || !counts_turns() || !are_values_local() || !continues()) return false;
    llvm::SCEVExpander expander(evolution_, inner_.getHeader()->getDataLayout(), "merged");
    BasicBlock* const before = outer_.getLoopPreheader();
    const SCEV* const last = evolution_.getBackedgeTakenCount(&outer_);
    if (!is_known_before(last, &outer_, evolution_, expander)) return false;
    llvm::IRBuilder<> b(before->getTerminator());
    Value* const turns = b.CreateAdd(
        b.CreateZExt(expander.expandCodeFor(last, last->getType(), before->getTerminator()), b.getInt64Ty()),
        b.getInt64(1));
    change(b.CreateMul(turns, b.getInt64(inner_turns_)));
    return true;
  }

 private:
  // One block in the inner loop; nothing but computations around it; both are left at their ends.
  bool has_form() {
    if (inner_.getNumBlocks() != 1 || !inner_.isLoopSimplifyForm() || !outer_.isLoopSimplifyForm() ||
        outer_.getSubLoops().size() != 1 || is_left_as_it_is(inner_) || is_left_as_it_is(outer_))
      return false;
    const auto is_left_at_end = [](const Loop& loop) {
      const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(loop.getLoopLatch()->getTerminator());
      return branch && branch->isConditional() && loop.getExitingBlock() == loop.getLoopLatch() &&
             loop.getExitBlock();
    };
    if (!is_left_at_end(inner_) || !is_left_at_end(outer_)) return false;
    for (const BasicBlock* const block : outer_.blocks()) {
      if (block == inner_.getHeader()) continue;
      for (const Instruction& instruction : *block)
        if (instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects()) return false;
      if (!block->getSingleSuccessor() && block != outer_.getLoopLatch()) return false;
    }
    return true;
  }

  // Both numbers of iterations are known, before the loops.
  bool counts_turns() {
    const std::optional<uint64_t> last = constant_of(evolution_.getBackedgeTakenCount(&inner_));
    if (!last || *last == 0 || *last >= kMaxInner) return false;
    inner_turns_ = *last + 1;
    return !llvm::isa<llvm::SCEVCouldNotCompute>(evolution_.getBackedgeTakenCount(&outer_));
  }

  // The next value of each counter depends on its loop alone, and nothing is used after the loops.
  bool are_values_local() {
    for (Loop* const loop : {&inner_, &outer_}) {
      for (PHINode& phi : loop->getHeader()->phis()) {
        if (!phi.getType()->isIntegerTy(64) && !phi.getType()->isPointerTy()) return false;
        const auto* const counter = llvm::dyn_cast<SCEVAddRecExpr>(evolution_.getSCEV(&phi));
        if (!counter || counter->getLoop() != loop || !counter->isAffine()) return false;
      }
    }
    for (const BasicBlock* const block : outer_.blocks())
      for (const Instruction& instruction : *block)
        for (const llvm::User* const user : instruction.users())
          if (!outer_.contains(llvm::cast<Instruction>(user))) return false;
    return true;
  }

  // Whether a value is computed, and not loaded, from a counter of the inner loop, or is one that the outer
  // loop computes for each iteration.
  bool is_counted(const Value* value) {
    const auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !outer_.contains(instruction)) return false;
    return !inner_.contains(instruction) || counted_.contains(instruction);
  }

  // Counters are used for addresses alone, which go on over the iterations of the outer loop.
  bool continues() {
    const Value* const end =
        llvm::cast<llvm::BranchInst>(inner_.getLoopLatch()->getTerminator())->getCondition();
    for (Instruction& instruction : *inner_.getHeader()) {
      const bool reads_counter =
          llvm::isa<PHINode>(instruction) ||
          llvm::any_of(instruction.operands(), [&](const llvm::Use& operand) { return is_counted(operand); });
      if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
        if (!load->isSimple() || !goes_on(load->getPointerOperand())) return false;
      } else if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
        if (!store->isSimple() || is_counted(store->getValueOperand()) ||
            !goes_on(store->getPointerOperand()))
          return false;
      } else if (&instruction == end || instruction.isTerminator()) {
        continue;
      } else if (instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects()) {
        return false;
      } else if (reads_counter) {
        switch (instruction.getOpcode()) {
          case Instruction::PHI:
          case Instruction::Add:
          case Instruction::Sub:
          case Instruction::Mul:
          case Instruction::Shl:
          case Instruction::GetElementPtr:
            break;
          default:
            return false;
        }
        counted_.insert(&instruction);
      }
    }
    return has_access_;
  }

  bool goes_on(Value* pointer) {
    const auto* const in = llvm::dyn_cast<SCEVAddRecExpr>(evolution_.getSCEV(pointer));
    if (!in || in->getLoop() != &inner_ || !in->isAffine()) return false;
    const auto* const out = llvm::dyn_cast<SCEVAddRecExpr>(in->getStart());
    if (!out || out->getLoop() != &outer_ || !out->isAffine()) return false;
    const auto* const step = llvm::dyn_cast<llvm::SCEVConstant>(in->getStepRecurrence(evolution_));
    const auto* const outer_step = llvm::dyn_cast<llvm::SCEVConstant>(out->getStepRecurrence(evolution_));
    if (!step || !outer_step || step->getAPInt().getBitWidth() != outer_step->getAPInt().getBitWidth() ||
        step->isZero())
      return false;
    has_access_ = true;
    return outer_step->getAPInt() == step->getAPInt() * inner_turns_;
  }

  void change(Value* turns) {
    BasicBlock* const body = inner_.getHeader();
    auto* const end = llvm::cast<llvm::BranchInst>(body->getTerminator());
    llvm::IRBuilder<> b(end);
    PHINode* const counter = PHINode::Create(b.getInt64Ty(), 2, "merged", body->begin());
    Value* const next = b.CreateNUWAdd(counter, b.getInt64(1));
    counter->addIncoming(b.getInt64(0), inner_.getLoopPreheader());
    counter->addIncoming(next, body);
    const bool goes_on_if_true = end->getSuccessor(0) == body;
    end->setCondition(goes_on_if_true ? b.CreateICmpNE(next, turns) : b.CreateICmpEQ(next, turns));
    for (Instruction* const instruction : counted_) instruction->dropPoisonGeneratingFlags();
    BasicBlock* const latch = outer_.getLoopLatch();
    BasicBlock* const after = outer_.getExitBlock();
    outer_.getHeader()->removePredecessor(latch);
    latch->getTerminator()->eraseFromParent();
    llvm::BranchInst::Create(after, latch);
    evolution_.forgetLoop(&outer_);
  }

  Loop& inner_;
  Loop& outer_;
  llvm::ScalarEvolution& evolution_;
  uint64_t inner_turns_ = 0;
  bool has_access_ = false;
  llvm::SmallPtrSet<Instruction*, 16> counted_;
};

}  // namespace

llvm::PreservedAnalyses MergeLoops::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  bool has_changed = false;
  for (Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
    if (loop->isInnermost() && loop->getParentLoop()) has_changed |= Merger(*loop, evolution).merge();
  return has_changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace halyard::jit
