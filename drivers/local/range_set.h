// RangeSet: a set of bytes, as ranges in order that do not meet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halyard::local {

// [begin, end)
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  auto operator<=>(const ByteRange&) const = default;

  uint64_t size() const { return end - begin; }
  bool overlaps(const ByteRange& other) const {
    return std::max(begin, other.begin) < std::min(end, other.end);
  }
};

class RangeSet {
 public:
  RangeSet() = default;
  explicit RangeSet(ByteRange range) { add({&range, 1}); }

  const std::vector<ByteRange>& ranges() const { return ranges_; }
  uint64_t size() const {  // bytes
    uint64_t sum = 0;
    for (const ByteRange& range : ranges_) sum += range.size();
    return sum;
  }
  // Empty ranges add nothing.
  void add(std::span<const ByteRange> ranges) {
    ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
    std::ranges::sort(ranges_);
    size_t kept = 0;
    for (const ByteRange range : std::vector(ranges_)) {
      if (range.begin >= range.end) continue;
      if (kept != 0 && ranges_[kept - 1].end >= range.begin) {
        ranges_[kept - 1].end = std::max(ranges_[kept - 1].end, range.end);
      } else {
        ranges_[kept++] = range;
      }
    }
    ranges_.resize(kept);
  }
  // The bytes that are not in `other`.
  RangeSet without(const RangeSet& other) const {
    RangeSet rest;
    auto hole = other.ranges_.begin();
    for (ByteRange range : ranges_) {
      while (hole != other.ranges_.end() && hole->end <= range.begin) ++hole;
      for (auto at = hole; at != other.ranges_.end() && at->begin < range.end; ++at) {
        if (at->begin > range.begin) rest.ranges_.push_back({range.begin, at->begin});
        range.begin = std::min(at->end, range.end);
      }
      if (range.begin < range.end) rest.ranges_.push_back(range);
    }
    return rest;
  }
  // The bytes of this and the other set.
  RangeSet common(const RangeSet& other) const { return without(without(other)); }
  // The whole multiples of `alignment` bytes in each range, counted from `origin`, which is before all
  // ranges.
  RangeSet whole(uint64_t alignment, uint64_t origin) const {
    std::vector<ByteRange> smaller = ranges_;
    for (ByteRange& range : smaller)
      range = {origin + (range.begin - origin + alignment - 1) / alignment * alignment,
               origin + (range.end - origin) / alignment * alignment};
    RangeSet result;
    result.add(smaller);
    return result;
  }

 private:
  std::vector<ByteRange> ranges_;
};

}  // namespace halyard::local
