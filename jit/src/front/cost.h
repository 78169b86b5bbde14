// Estimates, from a function's words, how long LLVM would take to compile it. The estimate is made before
// LLVM is called, because a hostile function could occupy a thread for minutes, and LLVM cannot be
// interrupted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vm/decode/code.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit {

struct Cost {
  size_t instructions = 0;  // compiled instructions
  size_t loops = 0;
  size_t own_calls = 0;  // recursive calls that may be compiled
  // A function above kMaxCost takes longer than about half a second (docs/jit.md).
  uint64_t total = 0;
};

inline constexpr uint64_t kMaxCost = uint64_t{1} << 23;

// `words` are those of the function; the addresses in call instructions need not be valid.
Cost estimate_cost(const halyard_jit_function_t& function, std::span<const vm::Word> words);

}  // namespace halyard::jit
