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
  void run(llvm::Module& module);

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager groups_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
  llvm::FunctionPassManager passes_;
};

}  // namespace halyard::jit
