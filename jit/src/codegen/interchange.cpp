// Searches each nest from its innermost loop outwards for the loop that counts the outputs. Then writes the
// nest in the new order, and deletes the old one.
#include "codegen/interchange.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/loops.h"

namespace halyard::jit {

namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

// Vectors of outputs that are summed at a time: enough to hide the latency of an addition, few enough for
// registers.
constexpr uint64_t kVectors = 8;
constexpr uint64_t kMinOutputs = 4;
// Independent scalar sums, for terms that are not contiguous: they cannot be vectorized, but do not wait for
// each other. More sums would evict each other's rows from the cache if the row length is a power of two.
constexpr uint64_t kStreams = 4;
constexpr size_t kMaxInstructions = 512;  // in a nest

struct Contraction {
  std::vector<Loop*> loops;       // the loop over outputs, then the loops over terms from outside in
  BasicBlock* body = nullptr;     // the innermost loop
  std::vector<const SCEV*> last;  // for each loop, the last value of a counter that begins at 0
  // Invariant conditions with the values for which the body is entered.
  std::vector<std::pair<Value*, bool>> entered;
  uint64_t output_size = 0;  // bytes
  bool is_strided = false;   // some loads for consecutive outputs are not contiguous
};

bool touches_nothing(const Instruction& instruction) {
  return !instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects();
}

class Finder {
 public:
  Finder(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        aliases_(analyses.getResult<llvm::AAManager>(function)),
        expander_(evolution_, function.getDataLayout(), "contraction") {}

  // Whether the function was changed even without finding a contraction, because conditions were moved out of
  // loops.
  bool changed() const { return changed_; }
  std::optional<Contraction> find(Loop* innermost) {
    if (innermost->getNumBlocks() != 1) return {};
    Contraction found;
    found.body = innermost->getHeader();
    found.loops = {innermost};
    while (Loop* const wider = found.loops.front()->getParentLoop()) {
      recomputable_.clear();
      found.loops.insert(found.loops.begin(), wider);
      if (!is_perfect(found)) return {};
      if (counts_outputs(found)) return found;
    }
    return {};
  }

 private:
  bool is_perfect(Contraction& nest);
  bool is_guard(const llvm::BranchInst& branch, Contraction& nest);
  bool counts_outputs(Contraction& nest);
  bool is_recomputable(Value* value, const Contraction& nest);
  std::optional<std::vector<const SCEV*>> strides(Value* pointer, const Contraction& nest);
  bool is_known_before(const SCEV* value, const Loop* outermost) {
    return jit::is_known_before(value, outermost, evolution_, expander_);
  }
  bool compute_recomputable(Instruction* instruction, const Contraction& nest);

  llvm::ScalarEvolution& evolution_;
  llvm::DominatorTree& dominators_;
  llvm::AAResults& aliases_;
  llvm::SCEVExpander expander_;
  llvm::DenseMap<Value*, bool> recomputable_;  // in the current nest
  bool changed_ = false;
};

// Whether the branch skips the next inner loop, on a condition that is known before the nest.
bool Finder::is_guard(const llvm::BranchInst& branch, Contraction& nest) {
  Loop* const outermost = nest.loops.front();
  if (!outermost->makeLoopInvariant(branch.getCondition(), changed_,
                                    outermost->getLoopPreheader()->getTerminator(), nullptr, &evolution_))
    return false;
  for (const unsigned side : {0u, 1u}) {
    if (!dominators_.dominates(llvm::BasicBlockEdge(branch.getParent(), branch.getSuccessor(side)),
                               nest.body))
      continue;
    nest.entered.emplace_back(branch.getCondition(), side == 0);
    return true;
  }
  return false;
}

// Whether the loops are perfectly nested, with only side-effect-free computations between them, and all
// iteration counts are known before the nest.
bool Finder::is_perfect(Contraction& nest) {
  Loop* const outermost = nest.loops.front();
  if (!outermost->isLoopSimplifyForm() || outermost->getSubLoops().size() != 1) return false;
  nest.last.clear();
  nest.entered.clear();
  for (Loop* const loop : nest.loops) {
    if (!loop->isLoopSimplifyForm() || loop->getExitingBlock() != loop->getLoopLatch()) return false;
    const SCEV* last = evolution_.getBackedgeTakenCount(loop);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(last) || !is_known_before(last, outermost) ||
        last->getType()->getIntegerBitWidth() > 64)
      return false;
    nest.last.push_back(
        evolution_.getNoopOrZeroExtend(last, llvm::Type::getInt64Ty(nest.body->getContext())));
  }
  size_t instructions = 0;
  for (BasicBlock* const block : outermost->blocks()) {
    instructions += block->size();
    if (instructions > kMaxInstructions) return false;
    if (block == nest.body) continue;
    for (const Instruction& instruction : *block)
      if (!instruction.isTerminator() && !touches_nothing(instruction)) return false;
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (!branch) return false;
    const bool is_latch = std::any_of(nest.loops.begin(), nest.loops.end(),
                                      [&](const Loop* loop) { return loop->getLoopLatch() == block; });
    if (branch->isConditional() && !is_latch && !is_guard(*branch, nest)) return false;
  }
  for (const llvm::PHINode& phi : outermost->getExitBlock()->phis())
    if (!outermost->isLoopInvariant(phi.getIncomingValue(0))) return false;
  return true;
}

// The stride of the address in each loop; no value if the address is not affine.
std::optional<std::vector<const SCEV*>> Finder::strides(Value* pointer, const Contraction& nest) {
  std::vector<const SCEV*> found(nest.loops.size(), nullptr);
  const SCEV* address = evolution_.getSCEV(pointer);
  while (const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address)) {
    const auto loop = std::find(nest.loops.begin(), nest.loops.end(), recurrence->getLoop());
    if (loop == nest.loops.end()) break;
    if (!recurrence->isAffine()) return {};
    found[static_cast<size_t>(loop - nest.loops.begin())] = recurrence->getStepRecurrence(evolution_);
    address = recurrence->getStart();
  }
  if (!evolution_.isLoopInvariant(address, nest.loops.front())) return {};
  return found;
}

// Whether the value can be computed from the counters alone.
bool Finder::is_recomputable(Value* value, const Contraction& nest) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (!instruction || !nest.loops.front()->contains(instruction)) return true;
  if (const auto found = recomputable_.find(value); found != recomputable_.end()) return found->second;
  const bool result = compute_recomputable(instruction, nest);
  recomputable_[value] = result;
  return result;
}

bool Finder::compute_recomputable(Instruction* instruction, const Contraction& nest) {
  if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
    const auto loop = std::find_if(nest.loops.begin(), nest.loops.end(),
                                   [&](const Loop* l) { return l->getHeader() == phi->getParent(); });
    if (loop == nest.loops.end() || !evolution_.isSCEVable(phi->getType())) return false;
    const auto* const recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(phi));
    return recurrence && recurrence->isAffine() && recurrence->getLoop() == *loop &&
           is_known_before(recurrence->getStepRecurrence(evolution_), nest.loops.front()) &&
           is_recomputable(phi->getIncomingValueForBlock((*loop)->getLoopPreheader()), nest);
  }
  if (instruction->getParent() == nest.body) return true;  // checked with the body
  return dominators_.dominates(instruction, nest.body) && touches_nothing(*instruction) &&
         std::all_of(instruction->op_begin(), instruction->op_end(),
                     [&](Value* operand) { return is_recomputable(operand, nest); });
}

bool Finder::counts_outputs(Contraction& nest) {
  nest.output_size = 0;
  nest.is_strided = false;
  llvm::SmallVector<Instruction*, 8> loads, stores;
  for (Instruction& instruction : *nest.body) {
    if (instruction.isTerminator()) continue;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && load->isSimple()) {
      loads.push_back(&instruction);
    } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
               store && store->isSimple()) {
      stores.push_back(&instruction);
    } else if (!touches_nothing(instruction)) {
      return false;
    }
    const auto is_known = [&](Value* value) { return is_recomputable(value, nest); };
    if (llvm::isa<llvm::PHINode>(instruction) ? !is_known(&instruction)
                                              : !llvm::all_of(instruction.operands(), is_known))
      return false;
  }
  if (stores.empty()) return false;
  const llvm::DataLayout& layout = nest.body->getDataLayout();
  const auto size_of = [&](Instruction* access) {
    return layout.getTypeStoreSize(llvm::getLoadStoreType(access)).getFixedValue();
  };
  const auto address_of = [&](Instruction* access) {
    return evolution_.getSCEV(llvm::getLoadStorePointerOperand(access));
  };
  const auto is_constant = [](const SCEV* value, uint64_t expected) {
    const auto* const constant = llvm::dyn_cast_or_null<llvm::SCEVConstant>(value);
    return constant && constant->getAPInt() == expected;
  };
  // Outputs must be distinct, contiguous elements.
  for (Instruction* const store : stores) {
    const auto steps = strides(llvm::getLoadStorePointerOperand(store), nest);
    if (!steps || !is_constant(steps->front(), size_of(store)) ||
        std::any_of(steps->begin() + 1, steps->end(), [](const SCEV* step) { return step; }))
      return false;
    nest.output_size = std::max(nest.output_size, size_of(store));
  }
  // Loads for the next output are contiguous, or of the same address; otherwise the nest is strided.
  for (Instruction* const load : loads) {
    const auto steps = strides(llvm::getLoadStorePointerOperand(load), nest);
    if (!steps) return false;
    nest.is_strided |= steps->front() && !is_constant(steps->front(), size_of(load));
  }
  // A strided nest is transformed only if its outputs are floats whose sums LLVM must not reorder. Otherwise
  // LLVM vectorizes over the terms.
  if (nest.is_strided && !std::all_of(stores.begin(), stores.end(), [](Instruction* store) {
        const auto* const value =
            llvm::dyn_cast<Instruction>(llvm::cast<llvm::StoreInst>(store)->getValueOperand());
        return value && value->getType()->isFloatingPointTy() &&
               !(llvm::isa<llvm::FPMathOperator>(value) && value->hasAllowReassoc());
      }))
    return false;
  // Each pair of accesses must be to the same output, or not alias.
  const auto is_apart = [&](Instruction* x, Instruction* y) {
    // Locations of unknown size, because not aliasing in one iteration is not enough.
    const auto everything = [](Instruction* access) {
      return llvm::MemoryLocation::getBeforeOrAfter(llvm::getLoadStorePointerOperand(access),
                                                    access->getAAMetadata());
    };
    return (address_of(x) == address_of(y) && size_of(x) == size_of(y)) ||
           aliases_.isNoAlias(everything(x), everything(y));
  };
  for (Instruction* const store : stores) {
    for (Instruction* const load : loads)
      if (!is_apart(store, load)) return false;
    for (Instruction* const other : stores)
      if (!is_apart(store, other)) return false;
  }
  const auto* const last = llvm::dyn_cast<llvm::SCEVConstant>(nest.last.front());
  if (nest.is_strided) return last && (last->getAPInt() + 1).urem(kStreams) == 0;
  return !last || last->getAPInt().uge(kMinOutputs - 1);
}

// Writes the nest with the loop over outputs innermost.
class Writer {
 public:
  Writer(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Contraction& nest)
      : nest_(nest),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        before_(nest.loops.front()->getLoopPreheader()),
        after_(nest.loops.front()->getExitBlock()),
        b_(before_->getTerminator()),
        expander_(evolution_, function.getDataLayout(), "contraction"),
        vector_bytes_(analyses.getResult<llvm::TargetIRAnalysis>(function)
                          .getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector)
                          .getFixedValue() /
                      8) {}

  void write();

 private:
  struct Level {
    Value* last = nullptr;
    BasicBlock* header = nullptr;
    llvm::PHINode* counter = nullptr;
  };
  uint64_t tile() const;
  Value* expand(const SCEV* value) {
    return expander_.expandCodeFor(value, value->getType(), before_->getTerminator());
  }
  Value* copy_of(Value* value);
  Value* copy_of_phi(llvm::PHINode* phi);

  const Contraction& nest_;
  llvm::ScalarEvolution& evolution_;
  BasicBlock* before_;
  BasicBlock* after_;
  llvm::IRBuilder<> b_;
  llvm::SCEVExpander expander_;
  uint64_t vector_bytes_;
  std::vector<Value*> counters_;  // for the old loops
  llvm::DenseMap<Value*, Value*> copies_;
  llvm::DenseMap<const SCEV*, Value*> steps_;  // computed before the nest
};

// The number of outputs that are summed at a time: a divisor of all outputs that fits in registers. 0: all of
// them.
uint64_t Writer::tile() const {
  const auto* const last = llvm::dyn_cast<llvm::SCEVConstant>(nest_.last.front());
  const uint64_t lanes = vector_bytes_ / nest_.output_size;
  if (!last || lanes == 0) return 0;
  const uint64_t outputs = last->getAPInt().getZExtValue() + 1;
  if (nest_.is_strided) return outputs > kStreams ? kStreams : 0;
  if (outputs <= kVectors * lanes) return 0;
  for (uint64_t vectors = kVectors; vectors > 1; --vectors)
    if (outputs % (vectors * lanes) == 0) return vectors * lanes;
  return 0;
}

Value* Writer::copy_of_phi(llvm::PHINode* phi) {
  const auto loop = std::find_if(nest_.loops.begin(), nest_.loops.end(),
                                 [&](const Loop* l) { return l->getHeader() == phi->getParent(); });
  const auto* const recurrence = llvm::cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(phi));
  Value* const start = copy_of(phi->getIncomingValueForBlock((*loop)->getLoopPreheader()));
  Value* const step = steps_.lookup(recurrence->getStepRecurrence(evolution_));
  Value* const counter =
      b_.CreateZExtOrTrunc(counters_[static_cast<size_t>(loop - nest_.loops.begin())], step->getType());
  Value* const distance = b_.CreateMul(counter, step);
  return phi->getType()->isPointerTy() ? b_.CreatePtrAdd(start, distance) : b_.CreateAdd(start, distance);
}

Value* Writer::copy_of(Value* value) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (!instruction || !nest_.loops.front()->contains(instruction)) return value;
  if (Value* const made = copies_.lookup(value)) return made;
  Value* copy = nullptr;
  if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
    copy = copy_of_phi(phi);
  } else {
    llvm::SmallVector<Value*, 4> operands;
    for (Value* operand : instruction->operands()) operands.push_back(copy_of(operand));
    Instruction* const made = instruction->clone();
    for (unsigned i = 0; i < operands.size(); ++i) made->setOperand(i, operands[i]);
    copy = b_.Insert(made, instruction->getName());
  }
  copies_[value] = copy;
  return copy;
}

void Writer::write() {
  // Computed before the nest: steps, iteration counts, and whether the body is entered.
  Value* entered = b_.getTrue();
  for (const auto& [condition, wanted] : nest_.entered)
    // Frozen, because the original program may not evaluate this condition.
    entered = b_.CreateAnd(entered, b_.CreateFreeze(wanted ? condition : b_.CreateNot(condition)));
  for (Loop* const loop : nest_.loops) {
    for (llvm::PHINode& phi : loop->getHeader()->phis()) {
      const auto* const recurrence = evolution_.isSCEVable(phi.getType())
                                         ? llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(&phi))
                                         : nullptr;
      if (!recurrence || !recurrence->isAffine()) continue;  // an unused phi
      const SCEV* const step = recurrence->getStepRecurrence(evolution_);
      if (is_known_before(step, nest_.loops.front(), evolution_, expander_)) steps_[step] = expand(step);
    }
  }
  const uint64_t tile = this->tile();
  std::vector<Level> levels;  // from outside in
  if (tile)
    levels.push_back({b_.getInt64(
        (llvm::cast<llvm::SCEVConstant>(nest_.last.front())->getAPInt().getZExtValue() + 1) / tile - 1)});
  for (size_t i = 1; i < nest_.last.size(); ++i) levels.push_back({expand(nest_.last[i])});
  levels.push_back({tile ? b_.getInt64(tile - 1) : expand(nest_.last.front())});

  // Headers from the outside in, the body, then the ends from the inside out.
  llvm::Function* const function = before_->getParent();
  BasicBlock* from = before_;
  for (Level& level : levels) {
    level.header =
        BasicBlock::Create(b_.getContext(), "contraction", function, nest_.loops.front()->getHeader());
    if (from != before_) b_.CreateBr(level.header);
    b_.SetInsertPoint(level.header);
    level.counter = b_.CreatePHI(b_.getInt64Ty(), 2, "counter");
    level.counter->addIncoming(b_.getInt64(0), from);
    from = level.header;
  }
  const size_t terms = tile ? 1 : 0;
  Value* output = levels.back().counter;
  if (tile) output = b_.CreateNUWAdd(b_.CreateNUWMul(levels.front().counter, b_.getInt64(tile)), output);
  counters_.push_back(output);
  for (size_t i = 1; i < nest_.loops.size(); ++i) counters_.push_back(levels[terms + i - 1].counter);
  for (Instruction& instruction : *nest_.body)
    if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction)) copy_of(&instruction);
  for (size_t i = levels.size(); i-- > 0;) {
    const Level& level = levels[i];
    BasicBlock* const latch = b_.GetInsertBlock();
    BasicBlock* const next = i == 0 ? after_
                                    : BasicBlock::Create(b_.getContext(), "contraction.end", function,
                                                         nest_.loops.front()->getHeader());
    level.counter->addIncoming(b_.CreateNUWAdd(level.counter, b_.getInt64(1)), latch);
    b_.CreateCondBr(b_.CreateICmpEQ(level.counter, level.last), next, level.header);
    if (i > 0) b_.SetInsertPoint(next);
  }

  for (llvm::PHINode& phi : llvm::make_early_inc_range(after_->phis())) {
    phi.replaceAllUsesWith(phi.getIncomingValue(0));
    phi.eraseFromParent();
  }
  before_->getTerminator()->eraseFromParent();
  b_.SetInsertPoint(before_);
  b_.CreateCondBr(entered, levels.front().header, after_);
  llvm::SmallVector<BasicBlock*, 16> old(nest_.loops.front()->blocks());
  evolution_.forgetLoop(nest_.loops.front());
  llvm::DeleteDeadBlocks(old);
}

}  // namespace

llvm::PreservedAnalyses InterchangeContractions::run(llvm::Function& function,
                                                     llvm::FunctionAnalysisManager& analyses) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
      if (!loop->isInnermost()) continue;
      Finder finder(function, analyses);
      const std::optional<Contraction> found = finder.find(loop);
      changed |= finder.changed();
      if (!found) continue;
      Writer(function, analyses, *found).write();
      analyses.invalidate(function, llvm::PreservedAnalyses::none());
      again = changed = true;
      break;
    }
  }
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace halyard::jit
