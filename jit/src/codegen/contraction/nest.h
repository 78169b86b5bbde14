// A contraction, as it was recognized: a nest of loops in which outputs next to each other each sum up terms.
//
//   for row...: for output: for term...: C[row][output] = op(A[row][term], B[term][output], C[row][output])
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>

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
  // From outside in: none to two loops over rows; the loop over outputs; the loops over terms.
  std::vector<llvm::Loop*> loops;
  size_t row_loops = 0;
  const char* not_rows =
      nullptr;  // why the loop around the outermost one is not over rows; null if there is none
  // For each loop, the last value of a counter that begins at 0.
  std::vector<const llvm::SCEV*> last;
  llvm::BasicBlock* body = nullptr;  // the innermost loop
  // Conditions that are known before the nest, with the values for which the body is entered.
  std::vector<std::pair<llvm::Value*, bool>> entered;
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
    uint64_t least, most;
  };
  std::vector<Distance> row_bytes;
  uint64_t output_bytes = 0;  // the largest element that is stored

  // The loop that the phi counts; null if it is at the head of none.
  llvm::Loop* loop_of(const llvm::PHINode& phi) const {
    for (llvm::Loop* const loop : loops)
      if (loop->getHeader() == phi.getParent()) return loop;
    return nullptr;
  }
  llvm::Loop* outermost() const { return loops.front(); }
  size_t output_level() const { return row_loops; }
  llvm::Loop* outputs() const { return loops[output_level()]; }
  llvm::Loop* innermost_rows() const { return row_loops == 0 ? nullptr : loops[row_loops - 1]; }
  // Where the nest is entered, and where it is left after its last iteration.
  llvm::BasicBlock* before() const { return outermost()->getLoopPreheader(); }
  llvm::BasicBlock* after() const {
    const auto* const branch = llvm::cast<llvm::BranchInst>(outermost()->getLoopLatch()->getTerminator());
    return branch->getSuccessor(outermost()->contains(branch->getSuccessor(0)) ? 1 : 0);
  }
};

}  // namespace halyard::jit::contraction
