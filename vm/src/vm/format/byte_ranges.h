// Finds overlapping byte ranges: programs may write to constants, which must not overlap data that the
// runtime reads again after its checks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halyard::vm {

// Ranges of memory, numbered in the order of construction. Empty ranges overlap nothing.
class ByteRanges {
 public:
  explicit ByteRanges(std::span<const std::span<const uint8_t>> ranges);

  // The number of a range that overlaps [begin, begin + size), or -1.
  int64_t overlapping(const void* begin, uint64_t size) const {
    const auto from = reinterpret_cast<uintptr_t>(begin);
    if (sorted_.empty() || from >= end_ || from + size <= sorted_.front().begin) return -1;
    return search(from, from + size);
  }
  // For each range, whether it overlaps another one.
  std::vector<bool> shared() const;

 private:
  struct Range {
    uintptr_t begin;
    uintptr_t end;
    uintptr_t reach;  // the largest end of this and all earlier ranges
    uint32_t number;
  };
  int64_t search(uintptr_t begin, uintptr_t end) const;

  std::vector<Range> sorted_;  // by begin, without empty ranges
  uintptr_t end_ = 0;          // the largest end of all ranges
  size_t count_ = 0;
};

}  // namespace halyard::vm
