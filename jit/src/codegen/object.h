// Generates an object file in memory, or assembly, from optimized functions.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

namespace halyard::jit {

// One thread at a time for each target machine.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> generate_object(llvm::Module& module,
                                                                    llvm::LLVMTargetMachine& machine,
                                                                    llvm::CodeGenFileType type);

}  // namespace halyard::jit
