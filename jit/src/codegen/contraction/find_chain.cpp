// Finds chains. In the program all iterations of a nest run before those of the next one. As one nest, an
// iteration of the next nest runs before later iterations of this one: so two accesses of different nests,
// one of which is a store, must be to different memory, or each to an element of its own in each iteration.
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>

#include "codegen/contraction/chain.h"
#include "codegen/contraction/recognize.h"
#include "codegen/loops.h"
#include "codegen/translate.h"

namespace halyard::jit::contraction {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::LoadInst;
using llvm::Loop;
using llvm::StoreInst;

namespace {

constexpr size_t kMaxNests = 32;
constexpr size_t kMaxApart = 32;  // pairs of ranges that are compared before a chain
constexpr uint64_t kLongRow = 64;

// The register with the buffer of the function's own that the store writes to; no value if it may write to
// another buffer, or to one that others refer to.
std::optional<uint64_t> own_register(const StoreInst& store) {
  const llvm::MDNode* const node = store.getMetadata(kStoredRegister);
  if (!node || node->getNumOperands() == 0) return {};
  return llvm::mdconst::extract<llvm::ConstantInt>(node->getOperand(0))->getZExtValue();
}

// Whether the buffers differ, because one is the function's own, and the other store is through another
// register.
bool are_buffers_different(const StoreInst& x, const StoreInst& y) {
  if (!x.getMetadata(kStoredRegister) || !y.getMetadata(kStoredRegister)) return false;
  return own_register(x) != own_register(y);
}

}  // namespace

// Whether the loops are a nest of a known number of iterations around loads, stores and computations.
bool Recognizer::is_link(Nest& nest, Loop* outermost) {
  if (is_left_as_it_is(*outermost) || llvm::getBooleanLoopAttribute(outermost, kSeparate)) return false;
  Loop* innermost = outermost;
  while (innermost->getSubLoops().size() == 1) innermost = innermost->getSubLoops().front();
  if (!innermost->isInnermost() || innermost->getNumBlocks() != 1) return false;
  nest.body = innermost->getHeader();
  if (llvm::any_of(*nest.body, is_function_call)) return false;
  nest.loops = {innermost};
  recomputable_.clear();
  if (!is_perfect(nest) || !are_accesses_known(nest)) return false;
  while (nest.outermost() != outermost)
    if (!add_rows(nest, Stops::one)) return false;
  if (nest.stop) return false;
  uint64_t turns = weight_of(*outermost);
  for (const llvm::SCEV* const last : nest.last) {
    const std::optional<uint64_t> known = constant_of(last);
    if (!known || *known >= kMaxCountedTurns || (turns *= *known + 1) > kMaxCountedTurns / kMaxNests)
      return false;
  }
  return are_outputs_apart(nest);
}

// Whether LLVM has wide vectors for the nest: its innermost loop is long, or becomes one with the loop around
// it (merge_loops.h), because all accesses go on from one to the other.
bool Recognizer::has_long_rows(const Nest& nest) {
  const uint64_t count = *constant_of(nest.last.back()) + 1;
  if (count >= kLongRow || nest.loops.size() < 2) return true;
  const auto goes_on = [&](Instruction* access) {
    const std::optional<Address> address = affine(llvm::getLoadStorePointerOperand(access), nest);
    const llvm::SCEV* const step = address ? address->strides.back() : nullptr;
    const llvm::SCEV* const around = address ? address->strides[nest.loops.size() - 2] : nullptr;
    if (!step || !around) return step == around;
    return constant_of(step) && constant_of(around) == *constant_of(step) * count;
  };
  return llvm::all_of(nest.loads, goes_on) && llvm::all_of(nest.stores, goes_on);
}

// Whether the access is to another element in each iteration.
bool Recognizer::is_of_its_own(Instruction* access, const Nest& nest) {
  const std::optional<Address> address = affine(llvm::getLoadStorePointerOperand(access), nest);
  if (!address) return false;
  std::vector<std::pair<uint64_t, uint64_t>> steps;  // and how many follow
  for (size_t level = 0; level < nest.loops.size(); ++level) {
    if (constant_of(nest.last[level]) == 0) continue;
    const std::optional<uint64_t> bytes = constant_of(address->strides[level]);
    if (!bytes || *bytes > UINT32_MAX) return false;
    steps.emplace_back(*bytes, *constant_of(nest.last[level]));
  }
  std::ranges::sort(steps);
  uint64_t covered = size_of(access);
  for (const auto& [bytes, count] : steps) {
    if (bytes < covered) return false;
    covered += bytes * count;
  }
  return true;
}

// Whether both accesses are to the same element in each iteration, which is another one in each.
bool Recognizer::is_same_element(Instruction* x, const Nest& of_x, Instruction* y, const Nest& of_y) {
  const std::optional<Address> one = affine(llvm::getLoadStorePointerOperand(x), of_x);
  const std::optional<Address> other = affine(llvm::getLoadStorePointerOperand(y), of_y);
  return one && other && one->start == other->start && one->strides == other->strides &&
         llvm::getLoadStoreType(x) == llvm::getLoadStoreType(y) && is_of_its_own(x, of_x);
}

// Requires that the accesses are to different memory, if the chain may compare as many ranges.
bool Recognizer::keep_apart(Instruction* x, const Nest& of_x, Instruction* y, const Nest& of_y,
                            Chain& chain) {
  return chain.together.apart.size() < kMaxApart &&
         keep_apart(x, of_x, y, of_y, chain.first(), chain.together);
}

// The last store of the nest to the element that the load reads in the same iteration; null if there is none.
StoreInst* Recognizer::store_of(LoadInst* load, const Nest& of_load, const Nest& nest) {
  for (StoreInst* const store : llvm::reverse(nest.stores))
    if (is_same_element(store, nest, load, of_load)) return store;
  return nullptr;
}

// Finds the loads of the nest that read what the chain has stored. There must be one.
bool Recognizer::find_stored(const Nest& nest, Chain& chain) {
  bool reads_chain = false;
  for (LoadInst* const load : nest.loads) {
    const auto is_of_load = [&](StoreInst* store) {
      return store->comesBefore(load) && is_same_element(store, nest, load, nest);
    };
    if (llvm::any_of(nest.stores, is_of_load)) continue;
    for (const Nest& before : llvm::reverse(chain.nests)) {
      StoreInst* const store = store_of(load, nest, before);
      if (!store) continue;
      chain.stored[load] = store;
      reads_chain = true;
      break;
    }
  }
  return reads_chain;
}

// Notes the stores whose elements are read for the last time in the chain, and by no load of their own nest,
// which reads memory.
void Recognizer::find_dead_stores(Chain& chain) {
  for (const auto& [load, store] : chain.stored)
    if (load->hasMetadata(kLastRead)) chain.dead.insert(store);
  for (const Nest& nest : chain.nests)
    for (LoadInst* const load : nest.loads) {
      if (chain.stored.contains(load)) continue;
      if (StoreInst* const store = store_of(load, nest, nest)) chain.dead.erase(store);
    }
}

// Whether the order of the accesses of two nests of the chain does not matter, perhaps because of what is
// required before it.
bool Recognizer::is_order_free(const Nest& before, const Nest& after, Chain& chain) {
  const auto is_read = [&](LoadInst* load) { return !chain.stored.contains(load); };
  for (StoreInst* const store : before.stores) {
    for (StoreInst* const later : after.stores)
      if (!are_buffers_different(*store, *later) && !is_same_element(store, before, later, after) &&
          !keep_apart(store, before, later, after, chain))
        return false;
    for (LoadInst* const load : after.loads)
      if (is_read(load) && !keep_apart(store, before, load, after, chain)) return false;
  }
  for (StoreInst* const store : after.stores) {
    if (chain.dead.contains(store)) continue;
    for (LoadInst* const load : before.loads)
      if (is_read(load) && !is_same_element(load, before, store, after) &&
          !keep_apart(load, before, store, after, chain))
        return false;
  }
  return true;
}

// The nest to which control comes first from the end of this one, in the same loop; null if there is none.
Loop* Recognizer::next_nest(const Loop& from) {
  const Loop* const around = from.getParentLoop();
  llvm::SmallPtrSet<const BasicBlock*, 32> reached;
  llvm::SmallVector<const BasicBlock*, 32> open = {Nest::after(from)};
  while (!open.empty()) {
    const BasicBlock* const block = open.pop_back_val();
    const bool begins_again = around && block == around->getHeader();
    if (begins_again || !reached.insert(block).second) continue;
    llvm::append_range(open, llvm::successors(block));
  }
  const auto level = [&](const Loop* loop) {
    return dominators_.getNode(loop->getLoopPreheader())->getLevel();
  };
  Loop* next = nullptr;
  for (Loop* const loop : around ? around->getSubLoops() : loops_.getTopLevelLoops()) {
    if (is_left_as_it_is(*loop) || !reached.contains(loop->getLoopPreheader())) continue;
    if (!next || level(loop) < level(next)) next = loop;
  }
  return next;
}

std::optional<Chain> Recognizer::find_chain(Loop* first) {
  Chain chain;
  chain.nests.emplace_back();
  if (!is_link(chain.nests.front(), first)) return {};
  chain.together.entered = chain.nests.front().entered;
  while (chain.nests.size() < kMaxNests) {
    const Loop& last = *chain.nests.back().outermost();
    Loop* const loop = next_nest(last);
    Nest next;
    Chain longer = chain;
    if (!loop || !is_link(next, loop) || next.last != chain.nests.front().last ||
        has_long_rows(next) != has_long_rows(chain.nests.front()) || !find_stored(next, longer) ||
        !join(*first, last, *loop, longer.together))
      break;
    longer.together.entered.insert(longer.together.entered.end(), next.entered.begin(), next.entered.end());
    longer.nests.push_back(std::move(next));
    chain = std::move(longer);
  }
  if (chain.nests.size() < 2) return {};
  find_dead_stores(chain);
  for (size_t i = 0; i < chain.nests.size(); ++i)
    for (size_t j = i + 1; j < chain.nests.size(); ++j)
      if (!is_order_free(chain.nests[i], chain.nests[j], chain)) return {};
  return chain;
}

}  // namespace halyard::jit::contraction
