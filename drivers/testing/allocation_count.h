// How often this program asks the system's allocator, from any thread. Not under a sanitizer, which has its
// own.
#pragma once

#include <cstdint>

#include "halyard/abi.h"

namespace halyard::driver_tests {

inline constexpr bool kCountsAllocations = HALYARD_SANITIZER_KIND == 0;

struct AllocationCount {
  int64_t made = 0;  // so far
  int64_t live = 0;  // made and not freed; since the program began, but for what the loader did
};
AllocationCount allocation_count();

}  // namespace halyard::driver_tests
