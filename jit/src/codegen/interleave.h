// Loops whose iterations are long chains of floating-point operations, such as those of an elementary
// function, are vectorized with several vectors at a time: the processor's window is too short to begin a
// vector while it computes the one before. LLVM would take one vector, because such iterations are long.
#pragma once

#include <llvm/IR/PassManager.h>

namespace halyard::jit {

// Runs before LLVM vectorizes loops. Requires loops in simplified form.
struct InterleaveLoops : llvm::PassInfoMixin<InterleaveLoops> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace halyard::jit
