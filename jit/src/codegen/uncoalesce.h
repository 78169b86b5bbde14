// Loops that were coalesced: where shapes are dynamic, the compiler of modules makes one loop over all
// elements of a nest, with divisions of its counter for the indices. They become nests again, so that indices
// are affine.
#pragma once

#include <llvm/IR/PassManager.h>

namespace halyard::jit {

// Expects loops in simple and closed form that are tested at their head, before HoistChecks.
struct UncoalesceLoops : llvm::PassInfoMixin<UncoalesceLoops> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace halyard::jit
