// Reorders contractions. In `for n: for k: C[n] += A[k] * B[k][n]` every sum waits for its previous term. The
// pass sums tiles of outputs side by side, in vectors. Each output still adds the same terms in the same
// order, so results do not change by a bit.
#pragma once

#include <llvm/IR/PassManager.h>

namespace halyard::jit {

// The name under which the pass says what it did with each nest, as remarks of LLVM.
inline constexpr char kContraction[] = "contraction";

// Requires rotated loops in simplified and LCSSA form. Runs after HoistChecks, and before accesses move out
// of loops.
struct TileContractions : llvm::PassInfoMixin<TileContractions> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace halyard::jit
