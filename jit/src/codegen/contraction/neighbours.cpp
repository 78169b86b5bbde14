// Finds the nests before and after the sums that access the same outputs: one that stores the value with
// which the sums begin, and one that reads each sum once. Written together with the sums, they need no
// memory between them.
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>

#include <algorithm>

#include "codegen/contraction/recognize.h"
#include "codegen/loops.h"
#include "codegen/translate.h"
#include "shared/symbols.h"

namespace halyard::jit::contraction {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

namespace {

// Whether the instruction clears a register that holds a ref.
bool is_release(const Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == kPutRef &&
         llvm::isa<llvm::ConstantPointerNull>(call->getArgOperand(1));
}

// The block to which control goes, if it goes on to `target`. Null if it may go elsewhere without a decision
// that is known to lead there.
BasicBlock* next_on_way(BasicBlock* block, const BasicBlock* target, const llvm::DominatorTree& dominators,
                        std::vector<std::pair<llvm::WeakTrackingVH, bool>>& taken) {
  const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
  if (!branch) return nullptr;
  if (branch->isUnconditional()) return branch->getSuccessor(0);
  for (const unsigned side : {0u, 1u}) {
    if (!dominators.dominates(llvm::BasicBlockEdge(block, branch->getSuccessor(side)), target)) continue;
    taken.emplace_back(branch->getCondition(), side == 0);
    return branch->getSuccessor(side);
  }
  return nullptr;
}

}  // namespace

// Whether the nest has one loop for each loop over rows and outputs of the sums, perhaps with as many
// iterations, and only loads, stores and computations in the innermost one.
bool Recognizer::is_elementwise(Nest& nest, Loop* outermost, const Nest& sums) {
  Loop* innermost = outermost;
  for (size_t level = 0; level < sums.row_loops; ++level) {
    if (innermost->getSubLoops().size() != 1) return false;
    innermost = innermost->getSubLoops().front();
  }
  if (!innermost->isInnermost() || innermost->getNumBlocks() != 1) return false;
  nest.body = innermost->getHeader();
  // A tile would call the functions once for each element; LLVM's vectorizer has vector forms of them.
  if (llvm::any_of(*nest.body, is_function_call)) return false;
  nest.loops = {innermost};
  recomputable_.clear();
  if (!is_perfect(nest) || !are_accesses_known(nest)) return false;
  while (nest.row_loops < sums.row_loops)
    if (!add_rows(nest, Stops::any)) return false;
  return std::equal(nest.last.begin(), nest.last.end(), sums.last.begin(), [](const SCEV* x, const SCEV* y) {
    return x == y || !constant_of(x) || !constant_of(y);
  });
}

// Requires that the nest has as many iterations as the sums.
bool Recognizer::have_same_counts(const Nest& nest, Nest& sums) {
  for (size_t level = 0; level < nest.last.size(); ++level) {
    if (nest.last[level] == sums.last[level]) continue;
    if (!is_known_before(nest.last[level], sums.first())) return false;
    sums.equal.emplace_back(nest.last[level], sums.last[level]);
  }
  return true;
}

// Whether the access is to the output of the same row and number.
bool Recognizer::is_of_output(Value* pointer, const Nest& nest, const Nest& sums) {
  const std::optional<Address> address = affine(pointer, nest);
  const std::optional<Address> output = affine(sums.stores.front()->getPointerOperand(), sums);
  return address && address->start == output->start &&
         std::equal(address->strides.begin(), address->strides.end(), output->strides.begin());
}

// Follows control from the end of the loop `from` to the beginning of `to`, and moves the computations on the
// way before the loop `first`. Adds the conditions that lead along it.
bool Recognizer::join(const Loop& first, const Loop& from, const Loop& to, Nest& sums) {
  const BasicBlock* const target = to.getLoopPreheader();
  llvm::SmallPtrSet<const BasicBlock*, 8> passed;
  for (BasicBlock* block = Nest::after(from); block;
       block = next_on_way(block, target, dominators_, sums.entered)) {
    if (!passed.insert(block).second || !make_available(*block, first, sums)) return false;
    if (block == target) return true;
  }
  return false;
}

// Whether the value is undefined only where any computation of the expression is.
bool Recognizer::is_defined_as(const SCEV* expression, Value* value) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  llvm::SmallVector<Instruction*, 4> with_flags;
  return !instruction ||
         (evolution_.canReuseInstruction(expression, instruction, with_flags) && with_flags.empty());
}

// Moves the computation of the value before `place`, if it is not known there, and can be.
bool Recognizer::move_before(Value* value, Instruction* place) {
  if (dominators_.dominates(value, place)) return true;
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (!instruction || llvm::isa<llvm::PHINode>(instruction) || instruction->mayReadOrWriteMemory() ||
      !dominators_.dominates(place, instruction) || !llvm::isSafeToSpeculativelyExecute(instruction, place) ||
      !llvm::all_of(instruction->operands(),
                    [&](Value* operand) { return dominators_.dominates(operand, place); }))
    return false;
  instruction->moveBefore(place);
  return changed_ = true;
}

// A value known at `place` that the phi has wherever control comes from; null if there is none.
Value* Recognizer::same_on_all_ways(const llvm::PHINode& phi, Instruction* place) {
  if (!evolution_.isSCEVable(phi.getType())) return nullptr;
  const SCEV* all = nullptr;
  for (Value* const value : phi.incoming_values()) {
    const SCEV* const one = evolution_.getSCEVAtScope(value, loops_.getLoopFor(phi.getParent()));
    if (all && one != all) return nullptr;
    all = one;
  }
  for (Value* const value : phi.incoming_values())
    if (is_defined_as(all, value) && move_before(value, place)) return value;
  return nullptr;
}

// Moves the block's computations to where they are known before the loop. Releases of refs stay.
bool Recognizer::make_available(BasicBlock& block, const Loop& before, Nest& sums) {
  Instruction* const place =
      dominators_.findNearestCommonDominator(before.getLoopPreheader(), &block)->getTerminator();
  for (Instruction& instruction : llvm::make_early_inc_range(block)) {
    if (instruction.isTerminator()) break;
    if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
      Value* const same = same_on_all_ways(*phi, place);
      if (!same) return false;
      phi->replaceAllUsesWith(same);
      evolution_.forgetValue(phi);
      phi->eraseFromParent();
      changed_ = true;
    } else if (is_release(instruction)) {
      sums.releases.push_back(llvm::cast<llvm::CallInst>(&instruction));
    } else if (place->getParent() != &block && !move_before(&instruction, place)) {
      return false;
    }
  }
  evolution_.forgetBlockAndLoopDispositions();
  return true;
}

// Whether the nest only stores one value, to each output.
bool Recognizer::is_fill(Loop* outermost, Nest& sums) {
  Nest nest;
  if (!is_elementwise(nest, outermost, sums) || !nest.loads.empty() || nest.stores.size() != 1) return false;
  llvm::StoreInst* const store = nest.stores.front();
  Value* const value = store->getValueOperand();
  if (!outermost->isLoopInvariant(value) ||
      value->getType() != sums.stores.front()->getValueOperand()->getType() ||
      !is_of_output(store->getPointerOperand(), nest, sums))
    return false;
  Nest with_fill = sums;
  with_fill.fill = outermost;
  with_fill.first_sum = value;
  if (!join(*outermost, *outermost, *sums.outermost(), with_fill) || !with_fill.releases.empty() ||
      !have_same_counts(nest, with_fill))
    return false;
  sums = std::move(with_fill);
  sums.entered.insert(sums.entered.end(), nest.entered.begin(), nest.entered.end());
  return true;
}

// Whether the stores are to contiguous elements in each row. Whether rows overlap is compared before the
// nest.
bool Recognizer::are_contiguous(llvm::StoreInst* store, Nest& epilogue) {
  const std::optional<Address> address = affine(store->getPointerOperand(), epilogue);
  epilogue.output_bytes = size_of(store);
  return address && constant_of(address->strides.back()) == epilogue.output_bytes;
}

// The addresses of the access in all iterations, if they are known before the loop.
std::optional<Nest::Range> Recognizer::range(Instruction* access, const Nest& nest, const Loop* before) {
  const std::optional<Address> address = affine(llvm::getLoadStorePointerOperand(access), nest);
  if (!address) return {};
  const SCEV* last = address->start;
  for (size_t level = 0; level < nest.loops.size(); ++level) {
    const SCEV* const stride = address->strides[level];
    if (!stride) continue;
    if (!evolution_.isKnownNonNegative(stride)) return {};
    last = evolution_.getAddExpr(last, evolution_.getMulExpr(stride, nest.last[level]));
  }
  if (!is_known_before(address->start, before) || !is_known_before(last, before)) return {};
  return Nest::Range{address->start, last, size_of(access)};
}

// Requires that the accesses of two nests are to different memory, which is compared before the loop.
bool Recognizer::keep_apart(Instruction* x, const Nest& of_x, Instruction* y, const Nest& of_y,
                            const Loop* before, Nest& together) {
  const std::optional<Nest::Range> one = range(x, of_x, before);
  const std::optional<Nest::Range> other = range(y, of_y, before);
  if (one && other) together.apart.emplace_back(*one, *other);
  return one && other;
}

// Finds the loads of sums. Other loads must be of contiguous elements, or of the same one in a row.
bool Recognizer::are_inputs_known(const Nest& epilogue, Nest& sums) {
  for (llvm::LoadInst* const load : epilogue.loads) {
    if (is_of_output(load->getPointerOperand(), epilogue, sums)) {
      if (load->getType() != sums.stores.front()->getValueOperand()->getType()) return false;
      sums.sum_loads.push_back(load);
      continue;
    }
    const std::optional<Address> address = affine(load->getPointerOperand(), epilogue);
    if (!address) return false;
    const SCEV* const step = address->strides.back();
    if (step && constant_of(step) != size_of(load)) return false;
  }
  sums.are_sums_dead =
      llvm::all_of(sums.sum_loads, [](const llvm::LoadInst* load) { return load->hasMetadata(kLastRead); });
  return !sums.sum_loads.empty();
}

// Whether the nest reads sums, and what it stores follows from one sum each.
bool Recognizer::is_epilogue(Loop* outermost, Nest& sums) {
  auto epilogue = std::make_shared<Nest>();
  Nest with_epilogue = sums;
  if (!is_elementwise(*epilogue, outermost, sums) || epilogue->stores.size() != 1 ||
      !are_inputs_known(*epilogue, with_epilogue) || !are_outputs_apart(*epilogue))
    return false;
  llvm::StoreInst* const store = epilogue->stores.front();
  with_epilogue.keeps_sums = !is_of_output(store->getPointerOperand(), *epilogue, sums);
  if (with_epilogue.keeps_sums && !are_contiguous(store, *epilogue)) return false;
  const auto is_known = [&](const Nest::Distance& bytes) {
    return is_known_before(bytes.least, sums.first());
  };
  if (!join(*sums.first(), *sums.outermost(), *outermost, with_epilogue) ||
      !have_same_counts(*epilogue, with_epilogue) || !llvm::all_of(epilogue->row_bytes, is_known))
    return false;
  if (with_epilogue.keeps_sums) {
    for (llvm::LoadInst* const load : sums.loads)
      if (!is_of_output(load->getPointerOperand(), sums, sums) &&
          !keep_apart(load, with_epilogue, store, *epilogue, with_epilogue.first(), with_epilogue))
        return false;
    for (llvm::LoadInst* const load : epilogue->loads)
      if (!llvm::is_contained(with_epilogue.sum_loads, load) &&
          !keep_apart(sums.stores.front(), with_epilogue, load, *epilogue, with_epilogue.first(),
                      with_epilogue))
        return false;
  }
  sums = std::move(with_epilogue);
  sums.entered.insert(sums.entered.end(), epilogue->entered.begin(), epilogue->entered.end());
  sums.epilogue = std::move(epilogue);
  return true;
}

// Whether running the nests twice has the effect of running them once: the sums begin with a value that is
// stored first, and the epilogue reads no result of its own.
bool Recognizer::is_repeatable(const Nest& sums) {
  if (!sums.fill) return false;
  if (!sums.epilogue) return true;
  const SCEV* const result = evolution_.getSCEV(sums.epilogue->stores.front()->getPointerOperand());
  return llvm::all_of(sums.epilogue->loads, [&](llvm::LoadInst* load) {
    return llvm::is_contained(sums.sum_loads, load) ||
           evolution_.getSCEV(load->getPointerOperand()) != result;
  });
}

// Adds the nests around the sums, in the same loop, to them.
bool Recognizer::add_neighbours(Nest& sums) {
  if (sums.stores.size() != 1 || llvm::getBooleanLoopAttribute(sums.loops.back(), kSeparate)) return false;
  const Loop* const around = sums.outermost()->getParentLoop();
  const std::vector<Loop*> beside(around ? around->begin() : loops_.begin(),
                                  around ? around->end() : loops_.end());
  const auto is_other = [&](const Loop* loop) {
    return loop != sums.outermost() && !is_left_as_it_is(*loop);
  };
  for (Loop* const loop : beside)
    if (is_other(loop) && is_fill(loop, sums)) break;
  for (Loop* const loop : beside)
    if (is_other(loop) && loop != sums.fill && is_epilogue(loop, sums)) break;
  if (!sums.is_together()) return false;
  sums.stop = nullptr;
  sums.is_repeatable = is_repeatable(sums);
  return true;
}

}  // namespace halyard::jit::contraction
