// Moves bounds checks out of loops. If the indices in a loop nest are affine in its counters, one comparison
// of their ranges before the nest replaces the checks inside, and proves that buffers do not overlap. The
// nest is duplicated: if the comparison fails, the copy with all checks runs, and leaves compiled code at the
// element where the interpreter fails.
#pragma once

#include <llvm/IR/PassManager.h>

namespace halyard::jit {

// Requires rotated loops in simplified and LCSSA form.
struct HoistChecks : llvm::PassInfoMixin<HoistChecks> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace halyard::jit
