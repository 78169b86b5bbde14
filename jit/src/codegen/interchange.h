// Contractions across their outputs. In `for n: for k: C[n] += A[k] * B[k][n]` every sum waits for its last
// term. The loop over outputs moves inside the loops over terms, where LLVM makes vectors of it. Each output
// still adds the same terms in the same order, so every bit of the result stays.
#pragma once

#include <llvm/IR/PassManager.h>

namespace halyard::jit {

// Expects rotated loops in simple and closed form, after HoistChecks, before accesses move out of loops.
struct InterchangeContractions : llvm::PassInfoMixin<InterchangeContractions> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace halyard::jit
