// Unions of the ranges that instructions access.
#include "vm/count/accesses.h"

#include <algorithm>
#include <utility>

namespace halyard::vm {

void CountedAccesses::clear() {
  extents_.clear();
  has_unknown_ = false;
}

void CountedAccesses::add(uint32_t step, uint32_t binding, bool writes, uint64_t begin, uint64_t end,
                          uint64_t each) {
  Extent& extent = extents_[{step, binding, writes}];
  extent.each = each;
  extent.begin = std::min(extent.begin, begin);
  extent.end = std::max(extent.end, end);
}

void CountedAccesses::sum(KernelCounts& counts, size_t bindings, const Executions& executions) const {
  if (has_unknown_) return;
  counts.bytes = KernelCounts::Bytes();
  for (uint32_t binding = 0; binding < bindings; ++binding) {
    counts.bytes->read += bytes_of(binding, false, executions);
    counts.bytes->written += bytes_of(binding, true, executions);
  }
  counts.ranges = ranges();
}

std::vector<KernelCounts::Range> CountedAccesses::ranges() const {
  std::vector<KernelCounts::Range> all;
  for (const auto& [site, extent] : extents_)
    if (extent.begin < extent.end) all.push_back({site.binding, site.writes, extent.begin, extent.end});
  join_ranges(all);
  return all;
}

// The union of the ranges of a binding, but at most the sum of the bytes that each instruction accesses.
uint64_t CountedAccesses::bytes_of(uint32_t binding, bool writes, const Executions& executions) const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  uint64_t most = 0;
  for (const auto& [site, extent] : extents_) {
    if (site.binding != binding || site.writes != writes || extent.begin >= extent.end) continue;
    ranges.emplace_back(extent.begin, extent.end);
    const uint64_t range = extent.end - extent.begin;
    uint64_t moved = 0;
    const bool is_moved_known =
        extent.each != 0 && !__builtin_mul_overflow(extent.each, executions(site.step), &moved);
    most += is_moved_known ? std::min(range, moved) : range;
  }
  std::ranges::sort(ranges);
  uint64_t covered = 0;
  uint64_t end = 0;
  for (const auto& [first, last] : ranges) {
    covered += last > end ? last - std::max(first, end) : 0;
    end = std::max(end, last);
  }
  return std::min(covered, most);
}

}  // namespace halyard::vm
