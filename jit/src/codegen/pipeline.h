// The LLVM passes for translated functions.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#ifdef HALYARD_JIT_VERIFY
#include <llvm/Passes/StandardInstrumentations.h>
#endif
#include <llvm/Target/TargetMachine.h>

namespace halyard::jit {

// Optimizes functions one after another; creates and registers analyses only once. One thread at a time.
class Pipeline {
 public:
  explicit Pipeline(llvm::TargetMachine& machine);
  // Returns an error if the function is refused, because the passes or code generation would take too long.
  llvm::Error run(llvm::Module& module);

 private:
  llvm::Error run_passes(llvm::Module& module);

  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager groups_;
  llvm::ModuleAnalysisManager modules_;
#ifdef HALYARD_JIT_VERIFY
  // LLVM verifies a function after each pass: later passes may remove what an earlier one has made wrong.
  llvm::PassInstrumentationCallbacks callbacks_;
  llvm::VerifyInstrumentation verifying_{false};
#endif
  llvm::PassBuilder builder_;
  llvm::FunctionPassManager first_passes_;
  llvm::FunctionPassManager other_passes_;
};

}  // namespace halyard::jit
