// The heap of this test program, which fails on demand: it replaces operator new, including in the libraries
// that the program loads. One thread at a time.
#pragma once

#include <cstdint>

namespace faults {

// Allocations are counted, and fail, only within this scope.
class Armed {
 public:
  Armed();
  ~Armed();
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
};

enum class Lasting : uint8_t { once, for_good };

// Lets the allocation with this number (from 1, counted from now on) fail; with `for_good` also all later
// ones; 0: none.
void fail_allocation(int64_t number, Lasting lasting);
bool has_failed();           // whether an allocation has failed since then
int64_t live_allocations();  // of all code

}  // namespace faults
