// How often this process asks the system's allocator, from any thread: libhalyard, drivers and this tool
// alike. Counted only where somebody asks, so that nothing else is slower for it. Not under a sanitizer,
// which has its own allocator.
#pragma once

#include <cstdint>

#include "halyard/abi.h"

namespace halyard::tools {

inline constexpr bool kCountsAllocations = HALYARD_SANITIZER_KIND == 0;

// Counts while it lives. One at a time.
class AllocationCount {
 public:
  AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  ~AllocationCount();
  uint64_t so_far() const;
};

}  // namespace halyard::tools
