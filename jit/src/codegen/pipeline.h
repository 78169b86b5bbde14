// The passes that a translated function goes through.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>

namespace halyard::jit {

// Optimizes functions one after another; analyses and their registration are made once. One thread at a time.
class Pipeline {
 public:
  explicit Pipeline(llvm::TargetMachine& machine);
  // An error: a function is refused because the passes and what follows would take too long; the message
  // says why.
  llvm::Error run(llvm::Module& module);

 private:
  llvm::Error run_passes(llvm::Module& module);

  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager groups_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
  llvm::FunctionPassManager first_passes_;
  llvm::FunctionPassManager other_passes_;
};

}  // namespace halyard::jit
