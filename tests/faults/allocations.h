// The heap of this test program, which runs out when it is told to: operator new is replaced, for the
// libraries that it loads as well. One thread at a time.
#pragma once

#include <cstdint>

namespace faults {

// What follows counts, and fails, only within these.
class Armed {
 public:
  Armed();
  ~Armed();
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
};

enum class Lasting : uint8_t { once, for_good };

// From now on the allocation with that number (from 1) fails, and those behind it where it is for good; 0:
// none.
void fail_allocation(int64_t number, Lasting lasting);
bool has_failed();           // an allocation since then
int64_t live_allocations();  // made, by anybody, and not given back

}  // namespace faults
