// The records of a library of kernels (exec-cpu-library.md, section 5) and its query function.
#pragma once

#include <llvm/IR/Module.h>

#include <span>
#include <string>

namespace halyard::jit {

struct ExportedKernel {
  std::string name;    // for callers
  std::string symbol;  // of its function, in another object
  uint32_t binding_count = 0;
  uint32_t constant_count = 0;
  uint32_t local_memory_pages = 0;
};

// Adds the records of revisions 5 and 6, the function that returns one of them, and the functions of the C
// library that code generation calls: memcpy, memmove and memset.
void write_library(llvm::Module& module, llvm::StringRef name, std::span<const ExportedKernel> kernels);

}  // namespace halyard::jit
