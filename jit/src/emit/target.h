// The processors for which kernels are compiled ahead of time.
#pragma once

#include <llvm/Support/Error.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

namespace halyard::jit {

// `features`: beyond those of the processor, "+a,+b". Returns an error if LLVM does not know the target.
llvm::Expected<std::unique_ptr<llvm::LLVMTargetMachine>> make_target(llvm::StringRef triple,
                                                                     llvm::StringRef processor,
                                                                     llvm::StringRef features);

// Prepares a module for the target.
void set_target(llvm::Module& module, const llvm::LLVMTargetMachine& machine);
// Makes the function one for the target's processor, like those that are compiled at run time.
void set_processor(llvm::Function& function, const llvm::LLVMTargetMachine& machine);

}  // namespace halyard::jit
