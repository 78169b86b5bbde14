// Duplicates the loop. A condition before it selects the version: the nest, if the divisors are positive and
// divide the number of iterations; otherwise the original loop. The loop may contain loops.
//
//   for c below B:                    for m below B / (M * K): for n below M: for k below K:
//     c / (M * K), c % (M * K)          m, n * K + k
//     c % (M * K) / K, c % K            n, k
#include "codegen/uncoalesce.h"

#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <optional>

#include "codegen/loops.h"
#include "codegen/stop_word.h"

namespace halyard::jit {

namespace {

using llvm::BasicBlock;
using llvm::BinaryOperator;
using llvm::BranchInst;
using llvm::Instruction;
using llvm::Loop;
using llvm::PHINode;
using llvm::Value;

// Marks the copy of a loop that stays coalesced.
constexpr char kCoalesced[] = "halyard.coalesced";

// A signed x / y or x % y. The divisor is a select that replaces -1 by 1 (translate_ops.cpp).
struct Division {
  BinaryOperator* instruction = nullptr;
  Value* divisor = nullptr;
};

std::optional<Division> division(Instruction& instruction) {
  if (instruction.getOpcode() != Instruction::SDiv && instruction.getOpcode() != Instruction::SRem) return {};
  Value* divisor = instruction.getOperand(1);
  Value* chosen = nullptr;
  using namespace llvm::PatternMatch;
  if (match(divisor, m_Select(m_SpecificICmp(llvm::CmpInst::ICMP_EQ, m_Value(chosen), m_AllOnes()), m_One(),
                              m_Deferred(chosen))))
    divisor = chosen;
  return Division{llvm::cast<BinaryOperator>(&instruction), divisor};
}

struct Coalesced {
  Loop* loop = nullptr;
  PHINode* counter = nullptr;
  BranchInst* test = nullptr;  // counter < turns
  Value* turns = nullptr;
  // Iterations of the innermost loop, of the loop around it (null if there is none), and their product.
  Value* inner = nullptr;
  Value* middle = nullptr;
  Value* both = nullptr;
};

class Splitter {
 public:
  Splitter(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : function_(function),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)) {}

  // Whether the function was changed even without finding a loop, because divisors were moved out of loops.
  bool changed() const { return changed_; }
  std::optional<Coalesced> find(Loop* loop);
  void split(const Coalesced& found);

 private:
  void check_stop_word(BasicBlock* end, const Loop& coalesced, Value* base, Value* inner);
  void replace_divisions(const Coalesced& found, Value* whole, Value* outer, Value* middle, Value* inner);

  llvm::Function& function_;
  llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  llvm::DominatorTree& dominators_;
  bool changed_ = false;
};

std::optional<Coalesced> Splitter::find(Loop* loop) {
  if (!loop->isLoopSimplifyForm()) return {};
  Coalesced found;
  found.loop = loop;
  BasicBlock* const header = loop->getHeader();
  if (!llvm::hasSingleElement(header->phis())) return {};
  found.counter = &*header->phis().begin();
  found.test = llvm::dyn_cast<BranchInst>(header->getTerminator());
  using namespace llvm::PatternMatch;
  // The header runs one more time for each innermost loop, so it must not have side effects.
  for (const Instruction& instruction : *header)
    if (instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects()) return {};
  const auto is_next = [&] {
    return match(found.counter->getIncomingValueForBlock(loop->getLoopLatch()),
                 m_c_Add(m_Specific(found.counter), m_One()));
  };
  if (!found.counter->getType()->isIntegerTy(64) || !found.test || !found.test->isConditional() ||
      !match(found.counter->getIncomingValueForBlock(loop->getLoopPreheader()), m_Zero()) || !is_next() ||
      !match(found.test->getCondition(),
             m_SpecificICmp(llvm::CmpInst::ICMP_SLT, m_Specific(found.counter), m_Value(found.turns))) ||
      !found.test->getCondition()->hasOneUse() || !loop->contains(found.test->getSuccessor(0)) ||
      loop->contains(found.test->getSuccessor(1)))
    return {};
  // After the last iteration only the counter, which equals the number of iterations, is known.
  for (PHINode& phi : found.test->getSuccessor(1)->phis()) {
    Value* const value = phi.getIncomingValueForBlock(header);
    if (value != found.counter && !loop->isLoopInvariant(value)) return {};
  }
  const auto is_invariant = [&](Value* value) {
    return loop->makeLoopInvariant(value, changed_, loop->getLoopPreheader()->getTerminator(), nullptr,
                                   &evolution_);
  };
  if (!is_invariant(found.turns)) return {};
  llvm::SmallSetVector<Value*, 4> divisors;  // divisors of the counter
  for (BasicBlock* const block : loop->blocks()) {
    for (Instruction& instruction : *block) {
      const std::optional<Division> divided = division(instruction);
      if (!divided || instruction.getOperand(0) != found.counter) continue;
      if (llvm::isa<llvm::Constant>(divided->divisor) || !is_invariant(divided->divisor)) return {};
      divisors.insert(divided->divisor);
    }
  }
  if (divisors.empty() || divisors.size() > 2) return {};
  if (divisors.size() == 1) {
    found.inner = divisors[0];
    return found;
  }
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!match(divisors[i], m_c_Mul(m_Specific(divisors[1 - i]), m_Value(found.middle)))) continue;
    found.inner = divisors[1 - i];
    found.both = divisors[i];
    return found;
  }
  return {};
}

// Replaces the divisions, and folds the comparisons for negative numbers, so that indices become simple.
void Splitter::replace_divisions(const Coalesced& found, Value* whole, Value* outer, Value* middle,
                                 Value* inner) {
  // The remainder of the counter modulo the product of the divisors; in the header, so that it dominates
  // every block.
  Value* rest = nullptr;
  llvm::SmallPtrSet<Value*, 16> not_negative = {whole, outer, inner, found.inner};
  if (middle) {
    llvm::IRBuilder<> b(llvm::cast<Instruction>(whole)->getNextNode());
    rest = b.CreateNSWAdd(b.CreateNSWMul(middle, found.inner), inner);
    not_negative.insert({middle, found.middle, found.both, rest});
  }
  const llvm::SmallPtrSet<Value*, 4> positive = {found.inner, found.middle, found.both};
  const llvm::SimplifyQuery query(function_.getDataLayout());
  using namespace llvm::PatternMatch;
  const auto replacement = [&](Instruction& instruction) -> Value* {
    if (auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction)) {
      Value* const x = compare->getOperand(0);
      Value* const y = compare->getOperand(1);
      if (compare->getPredicate() == llvm::CmpInst::ICMP_SLT && not_negative.contains(x) &&
          match(y, m_Zero()))
        return llvm::ConstantInt::getFalse(compare->getType());
      if (compare->isEquality() && positive.contains(x) && (match(y, m_Zero()) || match(y, m_AllOnes())))
        return llvm::ConstantInt::getBool(compare->getType(),
                                          compare->getPredicate() == llvm::CmpInst::ICMP_NE);
    }
    if (const std::optional<Division> divided = division(instruction)) {
      Value* const x = instruction.getOperand(0);
      const bool is_rest = instruction.getOpcode() == Instruction::SRem;
      if (x == whole && divided->divisor == (middle ? found.both : found.inner)) {
        if (!is_rest) return outer;
        return middle ? rest : inner;
      }
      if (divided->divisor == found.inner && x == whole && is_rest) return inner;
      if (divided->divisor == found.inner && rest && x == rest) return is_rest ? inner : middle;
    }
    return llvm::simplifyInstruction(&instruction, query);
  };
  llvm::LoopBlocksRPO order(found.loop);
  order.perform(&loops_);
  for (BasicBlock* const block : order) {
    for (Instruction& instruction : llvm::make_early_inc_range(*block)) {
      if (instruction.isTerminator() || llvm::isa<PHINode>(instruction)) continue;
      Value* const value = replacement(instruction);
      if (!value || value == &instruction) continue;
      instruction.replaceAllUsesWith(value);
      instruction.eraseFromParent();
    }
  }
}

// Checks the stop word at the end of a row of `inner` iterations, which began at `base`. If the work must
// stop, execution continues in the coalesced loop with the next row, and leaves compiled code after one
// iteration.
void Splitter::check_stop_word(BasicBlock* end, const Loop& coalesced, Value* base, Value* inner) {
  BasicBlock* const head = end->getSingleSuccessor();
  // The latch is a block of its own, without an exit, so that the loop can be rotated.
  BasicBlock* const latch = BasicBlock::Create(end->getContext(), "uncoalesced.latch", &function_, head);
  BasicBlock* const stopped = BasicBlock::Create(end->getContext(), "uncoalesced.stop", &function_, head);
  llvm::IRBuilder<> b(stopped);
  coalesced.getHeader()->phis().begin()->addIncoming(b.CreateNSWAdd(base, inner), stopped);
  b.CreateBr(coalesced.getHeader());
  end->getTerminator()->eraseFromParent();
  b.SetInsertPoint(latch);
  b.CreateBr(head);
  head->replacePhiUsesWith(end, latch);
  b.SetInsertPoint(end);
  branch_unless_stopped(b, latch, stopped);
}

void Splitter::split(const Coalesced& found) {
  Loop* const loop = found.loop;
  BasicBlock* const before = loop->getLoopPreheader();
  BasicBlock* const header = loop->getHeader();
  BasicBlock* const after = found.test->getSuccessor(1);
  llvm::IRBuilder<> b(before->getTerminator());

  // Whether the nest has the same iterations as the loop. The maximum keeps the divisor from being 0 and
  // shows ScalarEvolution that it is not.
  Value* const turns = b.CreateFreeze(found.turns);
  Value* const inner = b.CreateFreeze(found.inner);
  Value* condition = b.CreateAnd(b.CreateICmpSGT(inner, b.getInt64(0)),
                                 b.CreateICmpULT(turns, b.getInt64(kMaxCountedTurns)));
  condition = b.CreateAnd(condition, b.CreateICmpULT(inner, b.getInt64(kMaxCountedTurns)));
  Value* product = inner;
  Value* middle = nullptr;
  if (found.middle) {
    middle = b.CreateFreeze(found.middle);
    condition = b.CreateAnd(condition, b.CreateICmpSGT(middle, b.getInt64(0)));
    condition = b.CreateAnd(condition, b.CreateICmpULT(middle, b.getInt64(kMaxCountedTurns)));
    product = b.CreateMul(inner, middle);
  }
  Value* const divisor = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, product, b.getInt64(1));
  Value* const outer = b.CreateFreeze(b.CreateUDiv(turns, divisor));
  condition = b.CreateAnd(condition, b.CreateICmpEQ(b.CreateMul(outer, divisor), turns));

  const Fork fork = fork_loop(*loop, condition, kCoalesced, loops_, dominators_);

  // The outer loops: their heads test, their ends count.
  struct Around {
    PHINode* counter;
    BasicBlock* head;
    BasicBlock* end;
  };
  const auto add_loop = [&](BasicBlock* from, BasicBlock* to, Value* count) {
    Around around = {nullptr, BasicBlock::Create(b.getContext(), "uncoalesced", &function_, header),
                     BasicBlock::Create(b.getContext(), "uncoalesced.end", &function_, header)};
    b.SetInsertPoint(around.head);
    around.counter = b.CreatePHI(b.getInt64Ty(), 2);
    around.counter->addIncoming(b.getInt64(0), from);
    BasicBlock* const body = BasicBlock::Create(b.getContext(), "uncoalesced.body", &function_, header);
    b.CreateCondBr(b.CreateICmpSLT(around.counter, count), body, to);
    b.SetInsertPoint(around.end);
    around.counter->addIncoming(b.CreateAdd(around.counter, b.getInt64(1), "", true, true), around.end);
    b.CreateBr(around.head);
    b.SetInsertPoint(body);
    return around;
  };
  fork.preheader->getTerminator()->eraseFromParent();
  const Around first = add_loop(fork.preheader, after, outer);
  llvm::IRBuilder<>(fork.preheader).CreateBr(first.head);
  BasicBlock* end = first.end;
  Value* row = first.counter;  // number of the innermost loop
  Value* column = nullptr;
  if (middle) {
    BasicBlock* const body = b.GetInsertBlock();
    const Around second = add_loop(body, first.end, middle);
    llvm::IRBuilder<>(body).CreateBr(second.head);
    end = second.end;
    column = second.counter;
    row = b.CreateNSWAdd(b.CreateNSWMul(first.counter, middle), column);
  }
  Value* const base = b.CreateNSWMul(row, inner);
  BasicBlock* const entry = b.GetInsertBlock();
  b.CreateBr(header);

  // The loop itself counts up to its divisor; all other uses get the whole counter.
  b.SetInsertPoint(header, header->getFirstNonPHIIt());
  PHINode* const counter = PHINode::Create(b.getInt64Ty(), 2, "", header->begin());
  Value* const whole = b.CreateNSWAdd(base, counter);
  BasicBlock* const latch = loop->getLoopLatch();
  found.counter->replaceAllUsesWith(whole);
  found.counter->eraseFromParent();
  counter->addIncoming(b.getInt64(0), entry);
  b.SetInsertPoint(found.test);
  found.test->setCondition(b.CreateICmpSLT(counter, inner));
  found.test->setSuccessor(1, end);
  b.SetInsertPoint(latch->getTerminator());
  counter->addIncoming(b.CreateAdd(counter, b.getInt64(1), "", true, true), latch);
  for (PHINode& phi : after->phis()) {
    const int from = phi.getBasicBlockIndex(header);
    if (phi.getIncomingValue(static_cast<unsigned>(from)) == whole)
      phi.setIncomingValue(static_cast<unsigned>(from), turns);
    phi.setIncomingBlock(static_cast<unsigned>(from), first.head);
  }
  if (!loop->isInnermost()) check_stop_word(end, *fork.copy, base, inner);
  replace_divisions(found, whole, first.counter, column, counter);
}

}  // namespace

llvm::PreservedAnalyses UncoalesceLoops::run(llvm::Function& function,
                                             llvm::FunctionAnalysisManager& analyses) {
  bool changed = false;
  llvm::SmallPtrSet<BasicBlock*, 16> seen;
  for (bool again = true; again;) {
    again = false;
    for (Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
      if (llvm::getBooleanLoopAttribute(loop, kCoalesced) || !seen.insert(loop->getHeader()).second) continue;
      Splitter splitter(function, analyses);
      const std::optional<Coalesced> found = splitter.find(loop);
      changed |= splitter.changed();
      if (!found) continue;
      splitter.split(*found);
      analyses.invalidate(function, llvm::PreservedAnalyses::none());
      again = changed = true;
      break;
    }
  }
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace halyard::jit
