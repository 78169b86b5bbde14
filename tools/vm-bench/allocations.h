// Counts the calls of the allocator in this process, on all threads: those of libhalyard, of drivers and of
// this tool. Calls are counted only while an AllocationCount exists, so nothing else becomes slower. Not
// available with a sanitizer, because a sanitizer has its own allocator.
#pragma once

#include <cstdint>

#include "halyard/abi.h"

namespace halyard::tools {

inline constexpr bool kCountsAllocations = HALYARD_SANITIZER_KIND == 0;

// Counts while it exists. At most one may exist.
class AllocationCount {
 public:
  AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  ~AllocationCount();
  uint64_t so_far() const;
};

}  // namespace halyard::tools
