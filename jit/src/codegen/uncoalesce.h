// Restores coalesced loops. For dynamic shapes, the compiler of modules makes one loop over all elements of a
// nest, and computes the indices from its counter by division. This pass converts such loops to nests, whose
// indices are affine.
#pragma once

#include <llvm/IR/PassManager.h>

namespace halyard::jit {

// Requires loops in simplified and LCSSA form with the test in the header. Runs before HoistChecks.
struct UncoalesceLoops : llvm::PassInfoMixin<UncoalesceLoops> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace halyard::jit
