// Estimates of the memory behind driver handles, in bytes, which the host charges to a program's budget: the
// actual sizes in this project's drivers, with a margin for others.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/budget.h"

namespace halyard::hal::driver_memory {

inline constexpr uint64_t kMemory = 384;  // without its bytes
inline constexpr uint64_t kSemaphore = 512;
inline constexpr uint64_t kSubscription = 256;
inline constexpr uint64_t kSubmission = 512;  // of queue work in flight
inline constexpr uint64_t kTimepoint = 128;   // of each wait or signal of it
inline constexpr uint64_t kBinding = 64;      // of an execution
inline constexpr uint64_t kCommandList = 256;

// Code is kept, decoded, and prepared for several threads.
constexpr uint64_t executable(uint64_t data_size) {
  return saturating_add(12 << 10, data_size > UINT64_MAX / 4 ? UINT64_MAX : data_size * 4);
}

// An allocation of that size: drivers round up to multiples of `alignment`.
constexpr uint64_t allocation(uint64_t size, uint64_t alignment) {
  alignment = std::max<uint64_t>(alignment, 1);
  return saturating_add(saturating_add(size, alignment - 1) / alignment * alignment, kMemory);
}

}  // namespace halyard::hal::driver_memory
