// The functions of the module vmvx as code of the library, for kernels that import them. They check their
// operands and give the bits of those of local devices on processors of the same level
// (docs/microkernels.md).
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Target/TargetMachine.h>

#include <set>
#include <string>
#include <string_view>

namespace halyard::jit {

// Whether there is a function for the import.
bool is_microkernel(std::string_view name, std::string_view convention);
// Its symbol, and its type: the arguments of the import, with buffers as addresses of them (kernel_entry.h),
// and after them an address for each result. It returns the code of a status.
std::string microkernel_symbol(std::string_view name);
llvm::FunctionType* microkernel_type(std::string_view convention, llvm::LLVMContext& context);

// Adds functions for the imports with these names, optimized.
void write_microkernels(const std::set<std::string>& names, llvm::Module& module,
                        llvm::LLVMTargetMachine& machine);

}  // namespace halyard::jit
