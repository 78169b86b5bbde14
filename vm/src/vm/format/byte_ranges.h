// Which ranges of bytes have bytes in common: constants, which programs may write to, and what the runtime
// reads again after its checks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halyard::vm {

// Ranges of memory, numbered in the order in which they are given. Empty ones overlap nothing.
class ByteRanges {
 public:
  explicit ByteRanges(std::span<const std::span<const uint8_t>> ranges);

  // The number of a range that overlaps [begin, begin + size), or -1.
  int64_t overlapping(const void* begin, uint64_t size) const {
    const auto from = reinterpret_cast<uintptr_t>(begin);
    if (sorted_.empty() || from >= end_ || from + size <= sorted_.front().begin) return -1;
    return search(from, from + size);
  }
  // For each range, whether another one overlaps it.
  std::vector<bool> shared() const;

 private:
  struct Range {
    uintptr_t begin;
    uintptr_t end;
    uintptr_t reach;  // the largest end so far
    uint32_t number;
  };
  int64_t search(uintptr_t begin, uintptr_t end) const;

  std::vector<Range> sorted_;  // by begin, without empty ones
  uintptr_t end_ = 0;          // of the last byte
  size_t count_ = 0;
};

}  // namespace halyard::vm
