// The heap of this test program, which fails on demand: it replaces operator new, also for the libraries that
// it loads. One thread at a time.
#pragma once

#include <cstdint>

namespace faults {

// Allocations count, and fail, only within this scope.
class Armed {
 public:
  Armed();
  ~Armed();
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
};

enum class Lasting : uint8_t { once, for_good };

// From now on the allocation with that number (from 1) fails, and with `for_good` all later ones; 0: none.
void fail_allocation(int64_t number, Lasting lasting);
bool has_failed();           // an allocation since then
int64_t live_allocations();  // live allocations of all code

}  // namespace faults
