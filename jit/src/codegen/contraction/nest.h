// A contraction, as it was recognized: a nest of loops in which outputs next to each other each sum up terms.
//
//   for row...: for output: for term...: C[row][output] = op(A[row][term], B[term][output], C[row][output])
//
// Or a nest without terms, which threads share as they share contractions.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ValueHandle.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace halyard::jit::contraction {

// A load whose elements for consecutive outputs are not contiguous.
struct StridedLoad {
  llvm::LoadInst* load = nullptr;
  const llvm::SCEV* step = nullptr;     // bytes from one output to the next
  bool is_contiguous_in_terms = false;  // those for consecutive terms of the innermost loop are
};

struct Nest {
  // From outside in: none to two loops over rows; the loop over outputs; the loops over terms, of which an
  // epilogue has none.
  std::vector<llvm::Loop*> loops;
  size_t row_loops = 0;
  const char* not_rows =
      nullptr;  // why the loop around the outermost one is not over rows; null if there is none
  // For each loop, the last value of a counter that begins at 0.
  std::vector<const llvm::SCEV*> last;
  llvm::BasicBlock* body = nullptr;  // the innermost loop
  // Conditions that are known before the nest, with the values for which the body is entered. A condition may
  // be replaced by another value while neighbours are looked for.
  std::vector<std::pair<llvm::WeakTrackingVH, bool>> entered;
  // Loads and stores of the body. Those of an output are of the same address in every iteration of the terms.
  llvm::SmallVector<llvm::LoadInst*, 8> loads;
  llvm::SmallVector<llvm::StoreInst*, 2> stores;
  std::vector<StridedLoad> strided;
  // The check of the stop word at the end of each iteration of the outermost loop, which counts rows. Null if
  // there is none.
  llvm::BranchInst* stop = nullptr;
  // For each loop over rows, the bytes between outputs of its consecutive rows, the least and the most of all
  // stores.
  struct Distance {
    const llvm::SCEV *least, *most;
  };
  std::vector<Distance> row_bytes;
  uint64_t output_bytes = 0;  // the largest element that is stored

  // Nests that run before and after this one, over the same outputs, and are written together with it.
  llvm::Loop* fill = nullptr;                       // stores the value with which each sum begins
  llvm::Value* first_sum = nullptr;                 // that value; null if there is no such nest
  std::shared_ptr<const Nest> epilogue;             // reads each sum, and stores what follows from it
  llvm::SmallVector<llvm::LoadInst*, 2> sum_loads;  // of the epilogue: its loads of the sum
  bool keeps_sums = true;                           // the epilogue does not store its result in their place
  bool are_sums_dead = false;                       // nothing reads their memory after the epilogue
  // Releases of refs between the sums and the epilogue.
  llvm::SmallVector<llvm::CallInst*, 4> releases;
  // Ranges of addresses that must not overlap, because the order of their accesses changes.
  struct Range {
    const llvm::SCEV* first;
    const llvm::SCEV* last;  // the address of the last element
    uint64_t element_bytes;
  };
  std::vector<std::pair<Range, Range>> apart;
  // Numbers of iterations that must be equal.
  std::vector<std::pair<const llvm::SCEV*, const llvm::SCEV*>> equal;
  // Whether the nests that are written together may begin again from the start after some of their rows have
  // run. If not, they run to their end.
  bool is_repeatable = false;

  // The loop that the phi counts, of this nest or of its epilogue; null if it is at the head of none.
  llvm::Loop* loop_of(const llvm::PHINode& phi) const {
    for (llvm::Loop* const loop : loops)
      if (loop->getHeader() == phi.getParent()) return loop;
    return epilogue ? epilogue->loop_of(phi) : nullptr;
  }
  // The level of a loop of this nest or of its epilogue.
  size_t level_of(const llvm::Loop* loop) const {
    const auto found = std::find(loops.begin(), loops.end(), loop);
    if (found == loops.end() && epilogue) return epilogue->level_of(loop);
    return static_cast<size_t>(found - loops.begin());
  }
  bool contains(const llvm::Instruction* instruction) const {
    return outermost()->contains(instruction) || (epilogue && epilogue->contains(instruction));
  }
  llvm::Loop* outermost() const { return loops.front(); }
  // Whether the loop over outputs is the innermost one: they are not sums.
  bool is_elementwise() const { return loops.size() == row_loops + 1; }
  size_t output_level() const { return row_loops; }
  llvm::Loop* outputs() const { return loops[output_level()]; }
  bool stores_floats() const {
    return llvm::all_of(stores, [](const llvm::StoreInst* store) {
      return store->getValueOperand()->getType()->isFloatingPointTy();
    });
  }
  bool is_together() const { return fill || epilogue; }
  bool may_stop_between_rows() const { return stop || (is_together() && is_repeatable); }
  // The first and the last loop that is written.
  llvm::Loop* first() const { return fill ? fill : outermost(); }
  llvm::Loop* last_loop() const { return epilogue ? epilogue->outermost() : outermost(); }
  // Where the first is entered, and where the last is left after its last iteration.
  llvm::BasicBlock* before() const { return first()->getLoopPreheader(); }
  llvm::BasicBlock* after() const { return after(*last_loop()); }
  static llvm::BasicBlock* after(const llvm::Loop& loop) {
    const auto* const branch = llvm::cast<llvm::BranchInst>(loop.getLoopLatch()->getTerminator());
    return branch->getSuccessor(loop.contains(branch->getSuccessor(0)) ? 1 : 0);
  }
};

}  // namespace halyard::jit::contraction
