// Counts the allocations of this program, on all threads. Not available under a sanitizer, which replaces the
// allocator.
#pragma once

#include <cstdint>

#include "halyard/abi.h"

namespace halyard::driver_tests {

inline constexpr bool kCountsAllocations = HALYARD_SANITIZER_KIND == 0;

struct AllocationCount {
  int64_t made = 0;  // total
  int64_t live = 0;  // allocated and not freed since the program started, except by the loader
};
AllocationCount allocation_count();

}  // namespace halyard::driver_tests
