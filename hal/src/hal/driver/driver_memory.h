// Estimates of the memory behind driver handles, in bytes. The host charges them to a program's budget. They
// are the actual sizes in this project's drivers, with a margin for others.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/budget.h"

namespace halyard::hal::driver_memory {

inline constexpr uint64_t kMemory = 384;  // without the bytes of the allocation
inline constexpr uint64_t kSemaphore = 512;
inline constexpr uint64_t kSubscription = 256;
inline constexpr uint64_t kSubmission = 512;  // for each submission in flight
inline constexpr uint64_t kTimepoint = 128;   // for each wait or signal of a submission
inline constexpr uint64_t kBinding = 64;      // for each binding of an execution
inline constexpr uint64_t kCommandList = 256;

// Drivers keep the code, a decoded copy, and preparations for several threads.
constexpr uint64_t executable(uint64_t data_size) {
  return saturating_add(12 << 10, data_size > UINT64_MAX / 4 ? UINT64_MAX : data_size * 4);
}

// An allocation of that size: drivers round up to multiples of `alignment`.
constexpr uint64_t allocation(uint64_t size, uint64_t alignment) {
  alignment = std::max<uint64_t>(alignment, 1);
  return saturating_add(saturating_add(size, alignment - 1) / alignment * alignment, kMemory);
}

}  // namespace halyard::hal::driver_memory
