// Vector functions of the C library (libmvec on x86-64) for exp and similar functions. Used only with fast
// math; errors are up to 4 units in the last place.
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
  const char* needs;  // the required processor feature, by LLVM's name
};

// All vector functions of this machine's library; empty if it has none. Thread-safe.
std::span<const VectorFunction> vector_functions();

// Whether the function runs on a processor with these features ("+avx2,+fma").
bool runs_on(const VectorFunction& function, llvm::StringRef features);

}  // namespace halyard::jit
