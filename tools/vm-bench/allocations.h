// Counts the calls of the system's allocator in this process, on all threads: those of libhalyard, of drivers
// and of this tool. They are counted only while an object here asks for it, so nothing else gets slower. Not
// available with a sanitizer, which has an allocator of its own.
#pragma once

#include <cstdint>

#include "halyard/abi.h"

namespace halyard::tools {

inline constexpr bool kCountsAllocations = HALYARD_SANITIZER_KIND == 0;

// Counts while it exists. One at a time.
class AllocationCount {
 public:
  AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  ~AllocationCount();
  uint64_t so_far() const;
};

}  // namespace halyard::tools
