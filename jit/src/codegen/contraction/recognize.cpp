// Searches each nest from its innermost loop outwards for the loop that counts the outputs, then looks
// whether the loops around it count rows.
#include "codegen/contraction/recognize.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Operator.h>

#include <algorithm>

#include "codegen/contraction/pairs.h"
#include "codegen/loops.h"
#include "codegen/translate.h"

namespace halyard::jit::contraction {

namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

constexpr uint64_t kMinOutputs = 4;
constexpr size_t kMaxRowLoops = 2;
constexpr size_t kMaxInstructions = 512;  // in a nest

bool touches_nothing(const Instruction& instruction) {
  return !instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects();
}

// Whether LLVM can vectorize a transposed nest over its terms, and does so at least as well: sums of
// integers, and single rows of floats whose order does not matter.
bool suits_llvm(const Nest& nest) {
  return !llvm::all_of(nest.stores, [&](llvm::StoreInst* store) {
    const auto* const value = llvm::dyn_cast<Instruction>(store->getValueOperand());
    if (!value || !value->getType()->isFloatingPointTy()) return false;
    const bool may_reorder = llvm::isa<llvm::FPMathOperator>(value) && value->hasAllowReassoc();
    return !may_reorder || nest.row_loops != 0;
  });
}

}  // namespace

Recognizer::Recognizer(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
    : loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
      evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
      dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
      aliases_(analyses.getResult<llvm::AAManager>(function)),
      expander_(evolution_, function.getDataLayout(), "contraction") {}

bool Recognizer::is_known_before(const SCEV* value, const Loop* outermost) {
  return jit::is_known_before(value, outermost, evolution_, expander_);
}

std::optional<Nest> Recognizer::find(Loop* innermost) {
  reason_ = "the innermost loop has branches, such as checks of indices";
  if (innermost->getNumBlocks() != 1) return {};
  Nest nest;
  nest.body = innermost->getHeader();
  nest.loops = {innermost};
  while (Loop* const wider = nest.outermost()->getParentLoop()) {
    recomputable_.clear();
    nest.loops.insert(nest.loops.begin(), wider);
    if (!is_perfect(nest)) return {};
    if (!counts_outputs(nest)) continue;
    Nest wide = nest;
    add_all_rows(nest, Stops::one);
    Dependence dependence(nest);
    const bool has_pairs = nest.row_loops != 0 && find_pairs(nest, dependence, evolution_);
    if (!nest.strided.empty() && suits_llvm(nest) && !has_pairs) {
      reason_ = "B is transposed, and LLVM vectorizes over the terms, which it may add in any order";
      return {};
    }
    // Nests that are written together are not left between rows.
    add_all_rows(wide, Stops::any);
    return add_neighbours(wide) ? wide : nest;
  }
  return {};
}

std::optional<Nest> Recognizer::find_elementwise(Loop* innermost) {
  Nest nest;
  nest.body = innermost->getHeader();
  nest.loops = {innermost};
  recomputable_.clear();
  if (innermost->getNumBlocks() != 1 || !is_perfect(nest) || !counts_outputs(nest) || !nest.strided.empty())
    return {};
  add_all_rows(nest, Stops::one);
  return nest.row_loops == 0 ? std::nullopt : std::optional(std::move(nest));
}

// Moves the computation of the value out of the loop, if possible.
bool Recognizer::make_invariant(Value* value, Loop& loop) {
  return loop.makeLoopInvariant(value, changed_, loop.getLoopPreheader()->getTerminator(), nullptr,
                                &evolution_);
}

// Whether the phi's value at the end of the loop is known before the loop, perhaps as the last value of a
// counter.
bool Recognizer::is_known_after(llvm::PHINode& phi, Loop& loop) {
  Value* const value = phi.getIncomingValueForBlock(loop.getLoopLatch());
  if (make_invariant(value, loop)) return true;
  if (!evolution_.isSCEVable(value->getType())) return false;
  const auto* const last =
      llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getSCEVAtScope(value, loop.getParentLoop()));
  if (!last) return false;
  phi.setIncomingValueForBlock(loop.getLoopLatch(), last->getValue());
  evolution_.forgetValue(&phi);
  return changed_ = true;
}

// Whether the branch skips the next inner loop, on a condition that is known before the nest.
bool Recognizer::is_guard(const llvm::BranchInst& branch, Nest& nest) {
  if (!make_invariant(branch.getCondition(), *nest.outermost())) return false;
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
bool Recognizer::is_perfect(Nest& nest) {
  Loop* const outermost = nest.outermost();
  if (!outermost->isLoopSimplifyForm() || outermost->getSubLoops().size() > 1)
    return refuse("a loop has several loops in it");
  nest.last.clear();
  nest.entered.clear();
  for (Loop* const loop : nest.loops) {
    if (!loop->isLoopSimplifyForm() || loop->getExitingBlock() != loop->getLoopLatch())
      return refuse("a loop has several exits, such as a check of an index or of the stop word");
    const SCEV* last = evolution_.getBackedgeTakenCount(loop);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(last) || !is_known_before(last, outermost) ||
        last->getType()->getIntegerBitWidth() > 64)
      return refuse("the number of iterations of a loop is not known before the nest");
    nest.last.push_back(
        evolution_.getNoopOrZeroExtend(last, llvm::Type::getInt64Ty(nest.body->getContext())));
  }
  size_t instructions = 0;
  for (BasicBlock* const block : outermost->blocks()) {
    instructions += block->size();
    if (instructions > kMaxInstructions) return refuse("the nest has too many instructions");
    if (block == nest.body) continue;
    for (const Instruction& instruction : *block)
      if (!instruction.isTerminator() && !touches_nothing(instruction))
        return refuse("memory is read or written between the loops");
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (!branch) return false;
    const bool is_latch = std::any_of(nest.loops.begin(), nest.loops.end(),
                                      [&](const Loop* loop) { return loop->getLoopLatch() == block; });
    if (branch->isConditional() && !is_latch && !is_guard(*branch, nest))
      return refuse("a branch between the loops depends on their counters");
  }
  for (llvm::PHINode& phi : outermost->getExitBlock()->phis())
    if (!is_known_after(phi, *outermost)) return refuse("a value of the nest is used after it");
  return true;
}

std::optional<Recognizer::Address> Recognizer::affine(Value* pointer, const Nest& nest) {
  std::vector<const SCEV*> found(nest.loops.size(), nullptr);
  const SCEV* address = evolution_.getSCEV(pointer);
  while (const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address)) {
    const auto loop = std::find(nest.loops.begin(), nest.loops.end(), recurrence->getLoop());
    if (loop == nest.loops.end()) break;
    if (!recurrence->isAffine()) return {};
    found[static_cast<size_t>(loop - nest.loops.begin())] = recurrence->getStepRecurrence(evolution_);
    address = recurrence->getStart();
  }
  if (!evolution_.isLoopInvariant(address, nest.outermost())) return {};
  return Address{address, std::move(found)};
}

// Whether the value can be computed from the counters alone.
bool Recognizer::is_recomputable(Value* value, const Nest& nest) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (!instruction || !nest.outermost()->contains(instruction)) return true;
  if (const auto found = recomputable_.find(value); found != recomputable_.end()) return found->second;
  const bool result = compute_recomputable(instruction, nest);
  recomputable_[value] = result;
  return result;
}

bool Recognizer::compute_recomputable(Instruction* instruction, const Nest& nest) {
  if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
    const Loop* const loop = nest.loop_of(*phi);
    if (!loop || !evolution_.isSCEVable(phi->getType())) return false;
    const auto* const recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(phi));
    return recurrence && recurrence->isAffine() && recurrence->getLoop() == loop &&
           is_known_before(recurrence->getStepRecurrence(evolution_), nest.outermost()) &&
           is_recomputable(phi->getIncomingValueForBlock(loop->getLoopPreheader()), nest);
  }
  if (instruction->getParent() == nest.body) return true;  // checked with the body
  return dominators_.dominates(instruction, nest.body) && touches_nothing(*instruction) &&
         std::all_of(instruction->op_begin(), instruction->op_end(),
                     [&](Value* operand) { return is_recomputable(operand, nest); });
}

// Whether the body has only loads, stores and computations, of values that can be recomputed.
bool Recognizer::are_accesses_known(Nest& nest) {
  nest.loads.clear();
  nest.stores.clear();
  for (Instruction& instruction : *nest.body) {
    if (instruction.isTerminator()) continue;
    if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && load->isSimple()) {
      nest.loads.push_back(load);
    } else if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
               store && store->isSimple()) {
      nest.stores.push_back(store);
    } else if (!touches_nothing(instruction)) {
      return refuse("the innermost loop has a call or an atomic access");
    }
    const auto is_known = [&](Value* value) { return is_recomputable(value, nest); };
    if (llvm::isa<llvm::PHINode>(instruction) ? !is_known(&instruction)
                                              : !llvm::all_of(instruction.operands(), is_known))
      return refuse("a value does not follow from the counters, such as a sum in a register");
  }
  return !nest.stores.empty();
}

// Whether each pair of accesses is to the same output, or does not alias.
bool Recognizer::are_outputs_apart(const Nest& nest) {
  const auto address_of = [&](Instruction* access) {
    return evolution_.getSCEV(llvm::getLoadStorePointerOperand(access));
  };
  const auto is_apart = [&](Instruction* x, Instruction* y) {
    // Locations of unknown size, because not aliasing in one iteration is not enough.
    const auto everything = [](Instruction* access) {
      return llvm::MemoryLocation::getBeforeOrAfter(llvm::getLoadStorePointerOperand(access),
                                                    access->getAAMetadata());
    };
    return (address_of(x) == address_of(y) && llvm::getLoadStoreType(x) == llvm::getLoadStoreType(y)) ||
           aliases_.isNoAlias(everything(x), everything(y));
  };
  for (Instruction* const store : nest.stores) {
    for (Instruction* const load : nest.loads)
      if (!is_apart(store, load)) return false;
    for (Instruction* const other : nest.stores)
      if (!is_apart(store, other)) return false;
  }
  return true;
}

// Whether the outermost loop counts outputs.
bool Recognizer::counts_outputs(Nest& nest) {
  if (!are_accesses_known(nest)) return false;
  nest.output_bytes = 0;
  nest.strided.clear();
  // Outputs must be distinct, contiguous elements.
  for (llvm::StoreInst* const store : nest.stores) {
    const auto steps = strides(store->getPointerOperand(), nest);
    if (!steps || constant_of(steps->front()) != size_of(store) ||
        std::any_of(steps->begin() + 1, steps->end(), [](const SCEV* step) { return step; }))
      return refuse("no loop counts outputs that are contiguous and the same for all terms");
    nest.output_bytes = std::max(nest.output_bytes, size_of(store));
  }
  // Loads for the next output are contiguous, or of the same address; others are strided.
  for (llvm::LoadInst* const load : nest.loads) {
    const auto steps = strides(load->getPointerOperand(), nest);
    if (!steps) return refuse("an address is not affine in the counters");
    if (steps->front() && constant_of(steps->front()) != size_of(load))
      nest.strided.push_back({load, steps->front(), constant_of(steps->back()) == size_of(load)});
  }
  if (!are_outputs_apart(nest)) return refuse("an output may be in a buffer that is read");
  const std::optional<uint64_t> last = constant_of(nest.last.front());
  return !last || *last >= kMinOutputs - 1 || refuse("there are fewer than 4 outputs");
}

void Recognizer::add_all_rows(Nest& nest, Stops stops) {
  while (nest.row_loops < kMaxRowLoops && add_rows(nest, stops)) {
  }
}

// Adds the loop around the nest to it, if that loop counts rows. If the work may stop within the nest, there
// is no such loop, unless it may stop anywhere.
bool Recognizer::add_rows(Nest& nest, Stops stops) {
  Loop* const rows = nest.outermost()->getParentLoop();
  if (!rows || (nest.stop && stops == Stops::one)) return false;
  Nest with_rows = nest;
  with_rows.loops.insert(with_rows.loops.begin(), rows);
  ++with_rows.row_loops;
  recomputable_.clear();
  if (!is_loop_of_rows(rows, with_rows, stops)) {
    nest.not_rows = reason_;
    return false;
  }
  nest = std::move(with_rows);
  return true;
}

bool Recognizer::is_loop_of_rows(Loop* rows, Nest& nest, Stops stops) {
  if (!rows->isLoopSimplifyForm() || rows->getSubLoops().size() != 1)
    return refuse("it has several loops in it");
  BasicBlock* const latch = rows->getLoopLatch();
  if (!rows->isLoopExiting(latch)) return refuse("it is not tested at its end");
  const SCEV* last = evolution_.getExitCount(rows, latch);
  if (llvm::isa<llvm::SCEVCouldNotCompute>(last) || !is_known_before(last, rows) ||
      last->getType()->getIntegerBitWidth() > 64)
    return refuse("its number of iterations is not known before it");
  nest.last.insert(nest.last.begin(),
                   evolution_.getNoopOrZeroExtend(last, llvm::Type::getInt64Ty(latch->getContext())));
  const auto is_known = [&](const SCEV* value) { return is_known_before(value, rows); };
  if (!std::all_of(nest.last.begin(), nest.last.end(), is_known))
    return refuse("the number of iterations of a loop in it depends on it");
  for (const auto& [condition, wanted] : nest.entered)
    if (!make_invariant(condition, *rows)) return refuse("a branch depends on its counter");
  // Around the loop in it there are computations, and at most the check of the stop word.
  const auto is_stop = [](const llvm::BranchInst& branch) {
    return branch.isConditional() && branch.hasMetadata(kStop);
  };
  for (BasicBlock* const block : rows->blocks()) {
    if (nest.loops[1]->contains(block)) continue;
    auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (!branch) return false;
    if (branch->isConditional() && block != latch && !is_stop(*branch) && !is_guard(*branch, nest))
      return refuse("a branch depends on its counter");
    if (is_stop(*branch)) {
      if ((nest.stop && stops == Stops::one) || rows->contains(branch->getSuccessor(1)))
        return refuse("it checks the stop word more than once");
      nest.stop = branch;
    }
    for (const Instruction& instruction : *block)
      if (!instruction.isTerminator() && !touches_nothing(instruction) &&
          !(is_stop(*branch) && instruction.isAtomic()))
        return refuse("memory is read or written around the loop in it");
  }
  // Each counter of rows can begin anywhere, and nothing but counters goes on from row to row.
  for (llvm::PHINode& phi : rows->getHeader()->phis())
    if (!is_recomputable(&phi, nest)) return refuse("a value other than a counter goes from row to row");
  for (llvm::PHINode& phi : nest.after()->phis())
    if (!is_known_after(phi, *rows)) return refuse("a value of it is used after it");
  if (!are_accesses_known(nest)) return false;
  Nest::Distance bytes = {};
  for (llvm::StoreInst* const store : nest.stores) {
    const auto steps = strides(store->getPointerOperand(), nest);
    const SCEV* const stride = steps ? steps->front() : nullptr;
    if (!stride || evolution_.isKnownNonPositive(stride) || !is_known_before(stride, rows))
      return refuse("the distance of its outputs is not positive, or not known before it");
    bytes.least = bytes.least ? evolution_.getUMinExpr(bytes.least, stride) : stride;
    bytes.most = bytes.most ? evolution_.getUMaxExpr(bytes.most, stride) : stride;
  }
  nest.row_bytes.insert(nest.row_bytes.begin(), bytes);
  return std::all_of(nest.loads.begin(), nest.loads.end(),
                     [&](llvm::LoadInst* load) { return strides(load->getPointerOperand(), nest); }) ||
         refuse("an address is not affine in its counter");
}

}  // namespace halyard::jit::contraction
