// Where buffers with known lifetimes lie in one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace halyard::aot {

// Bytes that are needed from one time to another, both included.
struct Lifetime {
  uint64_t size = 0;
  size_t first = 0;
  size_t last = 0;
  uint64_t offset = 0;  // the result
};

// The largest sum of sizes, rounded up to `alignment`, that are needed at one time.
uint64_t peak_of(const std::vector<Lifetime>& all, uint64_t alignment);
// First fit by decreasing size: gives offsets, and returns the size of the arena.
uint64_t place_by_size(std::vector<Lifetime>& all, uint64_t alignment);
// The best of several orders: never more than first fit by decreasing size.
uint64_t place(std::vector<Lifetime>& all, uint64_t alignment);

}  // namespace halyard::aot
