// How long LLVM would take for a function, estimated from its words before LLVM sees them: a hostile function
// would keep a thread busy for minutes, and LLVM cannot be stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vm/decode/code.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit {

struct Cost {
  size_t instructions = 0;  // that are compiled
  size_t loops = 0;
  size_t own_calls = 0;  // calls of the function to itself that may be compiled
  // Above kMostCost a function takes longer than about half a second (docs/jit.md).
  uint64_t total = 0;
};

inline constexpr uint64_t kMostCost = uint64_t{1} << 23;

// `words` are those of the function, where no word of a call need be an address.
Cost estimate_cost(const halyard_jit_function_t& function, std::span<const vm::Word> words);

}  // namespace halyard::jit
