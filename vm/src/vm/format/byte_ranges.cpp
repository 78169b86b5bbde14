// Ranges are sorted once; each query is a binary search.
#include "vm/format/byte_ranges.h"

#include <algorithm>

namespace halyard::vm {

ByteRanges::ByteRanges(std::span<const std::span<const uint8_t>> ranges) : count_(ranges.size()) {
  sorted_.reserve(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(ranges[i].data());
    if (!ranges[i].empty()) sorted_.push_back({begin, begin + ranges[i].size(), 0, static_cast<uint32_t>(i)});
  }
  std::ranges::sort(sorted_, {}, &Range::begin);
  for (Range& range : sorted_) range.reach = end_ = std::max(end_, range.end);
}

int64_t ByteRanges::search(uintptr_t begin, uintptr_t end) const {
  // `reach` ascends, so the first range with a larger reach than `begin` is the first one that ends after
  // `begin`.
  const auto found = std::ranges::upper_bound(sorted_, begin, {}, &Range::reach);
  return begin < end && found != sorted_.end() && found->begin < end ? int64_t{found->number} : -1;
}

std::vector<bool> ByteRanges::shared() const {
  std::vector<bool> result(count_);
  for (size_t i = 0; i + 1 < sorted_.size(); ++i) {
    // The next range overlaps this range or an earlier, longer one.
    if (sorted_[i + 1].begin < sorted_[i].reach) result[sorted_[i + 1].number] = true;
    if (sorted_[i + 1].begin < sorted_[i].end) result[sorted_[i].number] = true;
  }
  return result;
}

}  // namespace halyard::vm
