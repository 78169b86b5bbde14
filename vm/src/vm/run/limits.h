// The limits of a context's programs.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/budget.h"

namespace halyard::vm {

// Exceeding a limit is RESOURCE_EXHAUSTED; exceeding `time` is DEADLINE_EXCEEDED.
struct Limits {
  uint64_t stack_bytes = 8u << 20;             // per invocation
  uint64_t buffer_bytes = uint64_t{16} << 30;  // per vm.buffer
  uint32_t list_elements = 1u << 28;           // per vm.list
  Ref<Budget> memory;                          // of all memory that the program allocates; null: no limit
  std::chrono::nanoseconds time{0};            // per call from outside, including waits; 0: no limit
  bool concurrent_calls = true;                // false: refuse a second call at the same time
};

}  // namespace halyard::vm
