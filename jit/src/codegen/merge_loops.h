// Makes one loop of two where the inner one counts few elements and the next iteration of the outer one goes
// on right behind them, in all buffers: such as the three channels of the pixels of a row. The inner loop
// alone is too short for vectors.
#pragma once

#include <llvm/IR/PassManager.h>

namespace halyard::jit {

// Requires rotated loops in simplified and LCSSA form, whose checks are hoisted.
struct MergeLoops : llvm::PassInfoMixin<MergeLoops> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace halyard::jit
