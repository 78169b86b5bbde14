// One kernel as an object file: the code that the compiler at run time makes of it, and an entry function
// with the ABI of native executables (exec-cpu-library.md, section 4), which does what the interpreter does
// around that code.
#pragma once

#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <set>
#include <string>

#include "codegen/pipeline.h"
#include "vm/decode/emit_abi.h"

namespace halyard::jit {

struct KernelObject {
  std::unique_ptr<llvm::MemoryBuffer> object;
  uint32_t local_memory_pages = 0;
  std::set<std::string> microkernels;  // the imports that it calls (microkernels.h)
};

// Its entry function is named `symbol`. An error has the reason why the kernel is not compiled.
llvm::Expected<KernelObject> make_kernel_object(const halyard_emit_request_t& request,
                                                const halyard_emit_kernel_t& kernel,
                                                const std::string& symbol, llvm::LLVMTargetMachine& machine,
                                                Pipeline& pipeline);

}  // namespace halyard::jit
