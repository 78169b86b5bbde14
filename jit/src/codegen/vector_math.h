// Vector functions of the C library (libmvec on x86-64) for exp and its like; used with fast math only. Their
// errors are up to 4 units in the last place.
#pragma once

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <span>
#include <string>

#include "vm/format/opcodes.h"

namespace halyard::jit {

struct VectorFunction {
  vm::Op op;
  std::string name;
  uint32_t arguments;
  uint32_t lanes;
  const char* needs;  // the processor's feature, as LLVM calls it
};

// All that this machine's library has; empty where there is no such library. Thread-safe.
std::span<const VectorFunction> vector_functions();

// Whether the function runs on a processor with these features ("+avx2,+fma").
bool runs_on(const VectorFunction& function, llvm::StringRef features);

}  // namespace halyard::jit
