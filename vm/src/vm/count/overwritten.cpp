// Boxes, their union, and its bytes.
#include "vm/count/overwritten.h"

#include <algorithm>
#include <utility>

namespace halyard::vm {

void Overwritten::add(uint32_t binding, uint64_t size, const Form::Steps& offsets) {
  if (boxes_.size() == kMaxBoxes) return;
  Box box = {.binding = binding, .begin = static_cast<uint64_t>(offsets.begin), .run = size};
  for (size_t i = 0; i < offsets.count; ++i) {
    const auto [stride, trips] = offsets.steps[i];
    if (stride < 0) box.begin -= (trips - 1) * static_cast<uint64_t>(-stride);
    box.dimensions[i] = {static_cast<uint64_t>(stride < 0 ? -stride : stride), trips};
  }
  std::sort(box.dimensions.begin(), box.dimensions.begin() + static_cast<ptrdiff_t>(offsets.count));
  box.lengthen();
  boxes_.push_back(box);
}

void Overwritten::Box::lengthen() {
  while (dimensions[0].stride != 0 && dimensions[0].stride <= run) {
    run += dimensions[0].stride * (dimensions[0].trips - 1);
    std::move(dimensions.begin() + 1, dimensions.end(), dimensions.begin());
    dimensions.back() = {};
  }
}

uint64_t Overwritten::Box::runs(uint64_t most) const {
  uint64_t product = 1;
  for (const Dimension& dimension : dimensions) {
    if (dimension.stride == 0) break;
    if (dimension.trips > most || (product *= dimension.trips) > most) return UINT64_MAX;
  }
  return product;
}

void Overwritten::Box::list(size_t dimension, uint64_t at, std::vector<BindingRange>& to) const {
  if (dimension == kMaxDimensions || dimensions[dimension].stride == 0) {
    to.push_back({binding, true, at, at + run});
    return;
  }
  for (uint64_t i = 0; i < dimensions[dimension].trips; ++i)
    list(dimension + 1, at + i * dimensions[dimension].stride, to);
}

std::optional<std::vector<BindingRange>> Overwritten::ranges() const {
  std::vector<Box> boxes = boxes_;
  // Longer runs may let boxes repeat alike that did not before.
  for (size_t before = boxes.size() + 1; before != boxes.size();) {
    before = boxes.size();
    std::ranges::sort(boxes);
    size_t kept = 0;
    for (const Box& box : boxes) {
      Box* const last = kept != 0 ? &boxes[kept - 1] : nullptr;
      if (last && last->repeats_like(box) && last->end() >= box.begin) {
        last->run = std::max(last->end(), box.end()) - last->begin;
      } else {
        boxes[kept++] = box;
      }
    }
    boxes.resize(kept);
    for (Box& box : boxes) box.lengthen();
  }
  std::vector<BindingRange> listed;
  for (const Box& box : boxes)
    if (box.runs(max_runs_) <= max_runs_ - listed.size()) {
      box.list(0, box.begin, listed);
    } else {
      return {};
    }
  join_ranges(listed);
  return listed;
}

}  // namespace halyard::vm
