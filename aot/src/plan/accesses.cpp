#include "plan/accesses.h"

#include <algorithm>

namespace halyard::aot {

bool lie_apart(const Access& a, const Access& b, const Values& values, const OverlapOf& overlap) {
  int64_t distance = 0;
  if (a.memory != b.memory) {
    const Overlap lies = overlap(a.memory, b.memory);
    if (lies.kind == Overlap::Kind::none) return true;
    if (lies.kind == Overlap::Kind::unknown) return false;
    distance = lies.distance;
  }
  if (a.width == 0 || b.width == 0) return false;
  const Range& x = values[a.index].range;
  const Range& y = values[b.index].range;
  constexpr int64_t kLarge = INT64_C(1) << 40;
  if (x.low < 0 || y.low < 0 || x.high >= kLarge || y.high >= kLarge) return false;
  const int64_t x_end = a.offset + (x.high + 1) * a.width;
  const int64_t y_end = b.offset + distance + (y.high + 1) * b.width;
  return x_end <= b.offset + distance + y.low * b.width || y_end <= a.offset + x.low * a.width;
}

bool is_same_element(const Access& a, const Access& b, const Values& values) {
  return a.memory == b.memory && a.width == b.width && a.width != 0 && a.offset == b.offset &&
         values[a.index].affine.known && values[a.index].affine == values[b.index].affine;
}

bool is_injective(const Access& access, const std::vector<std::pair<ValueId, int64_t>>& counters,
                  const Values& values) {
  const Affine& index = values[access.index].affine;
  if (access.width == 0 || !index.known) return false;
  std::vector<std::pair<int64_t, int64_t>> strides;  // with the number of turns
  for (const auto& [counter, turns] : counters) {
    const auto found = std::ranges::find(index.terms, counter, &std::pair<ValueId, int64_t>::first);
    if (found == index.terms.end() || found->second <= 0) return false;
    strides.emplace_back(found->second, turns);
  }
  // Sorted by size, each stride is at least the number of elements that the smaller ones reach.
  std::ranges::sort(strides);
  int64_t reach = 1;
  for (const auto& [stride, turns] : strides) {
    if (stride < reach) return false;
    reach = stride * turns;
  }
  return true;
}

int64_t stride_of(const Access& access, ValueId counter, const Values& values) {
  for (const auto& [variable, coefficient] : values[access.index].affine.terms)
    if (variable == counter) return coefficient;
  return 0;
}

}  // namespace halyard::aot
