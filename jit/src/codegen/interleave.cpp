// Sets LLVM's attribute of a loop for the number of vectors.
#include "codegen/interleave.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>

#include "codegen/loops.h"

namespace halyard::jit {

namespace {

// Floating-point operations that wait for each other. The exponential has a chain of 15.
constexpr unsigned kLongChain = 12;
// Floating-point operations of an iteration. With more of them the code becomes too large.
constexpr unsigned kMostOperations = 256;
constexpr unsigned kMostVectors = 4;

struct Operations {
  unsigned count = 0;
  unsigned longest_chain = 0;  // in an iteration
};

Operations operations_of(const llvm::Loop& loop, const llvm::LoopInfo& loops) {
  llvm::LoopBlocksRPO order(const_cast<llvm::Loop*>(&loop));
  order.perform(&loops);
  Operations sum;
  llvm::DenseMap<const llvm::Value*, unsigned> chains;
  for (const llvm::BasicBlock* const block : order) {
    for (const llvm::Instruction& each : *block) {
      if (llvm::isa<llvm::PHINode>(each)) continue;
      unsigned& chain = chains[&each];
      for (const llvm::Value* const operand : each.operands())
        chain = std::max(chain, chains.lookup(operand));
      if (!each.isBinaryOp() || !each.getType()->isFloatingPointTy()) continue;
      ++sum.count;
      sum.longest_chain = std::max(sum.longest_chain, ++chain);
    }
  }
  return sum;
}

// The number of f32 in a vector; 0 if there are none.
unsigned lanes_of(const llvm::TargetTransformInfo& target) {
  return static_cast<unsigned>(
      target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue() / 32);
}

// `turns`: iterations of the loop; 0: unknown. LLVM computes what is left by 4 times 16 lanes in vectors of
// 8, but what is left by fewer lanes one element at a time, so no more elements may be left than by one
// vector.
unsigned vectors_for(uint64_t turns, unsigned lanes) {
  if (lanes < 2) return 1;
  const bool has_vector_rest = lanes >= 16;
  if (turns == 0) return has_vector_rest ? kMostVectors : 1;
  unsigned vectors = kMostVectors;
  for (; vectors > 1; vectors /= 2) {
    const uint64_t together = uint64_t{lanes} * vectors;
    if (turns >= together && (has_vector_rest || turns % together == turns % lanes)) break;
  }
  return vectors;
}

}  // namespace

llvm::PreservedAnalyses InterleaveLoops::run(llvm::Function& function,
                                             llvm::FunctionAnalysisManager& analyses) {
  const auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  const unsigned lanes = lanes_of(analyses.getResult<llvm::TargetIRAnalysis>(function));
  for (llvm::Loop* const loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost() || is_left_as_it_is(*loop)) continue;
    const Operations operations = operations_of(*loop, loops);
    if (operations.longest_chain < kLongChain || operations.count > kMostOperations) continue;
    const unsigned vectors = vectors_for(evolution.getSmallConstantTripCount(loop), lanes);
    if (vectors > 1) llvm::addStringMetadataToLoop(loop, "llvm.loop.interleave.count", vectors);
  }
  return llvm::PreservedAnalyses::all();
}

}  // namespace halyard::jit
