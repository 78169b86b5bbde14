// Ranges of bytes of bindings that a kernel accesses.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halyard::vm {

struct BindingRange {
  uint32_t binding = 0;
  bool writes = false;
  uint64_t begin = 0;  // bytes
  uint64_t end = 0;
  auto operator<=>(const BindingRange&) const = default;
};

// Sorts ranges, and makes one of those of a binding and kind that meet.
inline void join_ranges(std::vector<BindingRange>& ranges) {
  std::ranges::sort(ranges);
  size_t kept = 0;
  for (const BindingRange& range : ranges) {
    BindingRange* const last = kept != 0 ? &ranges[kept - 1] : nullptr;
    if (last && last->binding == range.binding && last->writes == range.writes && last->end >= range.begin) {
      last->end = std::max(last->end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace halyard::vm
