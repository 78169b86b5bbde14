// Checks out of loops. Where the indices of a nest of loops are affine in its counters, one comparison of
// their ranges before the nest replaces the checks inside, and tells that buffers do not overlap. The nest is
// there twice: where the comparison fails, the one with all of its checks runs, and leaves at the very
// element where the interpreter fails.
#pragma once

#include <llvm/IR/PassManager.h>

namespace halyard::jit {

// Expects rotated loops in simple and closed form.
struct HoistChecks : llvm::PassInfoMixin<HoistChecks> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace halyard::jit
