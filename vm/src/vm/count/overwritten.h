// Overwritten: the bytes of bindings that the stores of a counted kernel certainly write. Each store in a
// nest of loops is a box: a run of bytes, repeated along dimensions. Boxes that continue each other become
// one, so that few runs are left when the bytes are listed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vm/count/binding_range.h"
#include "vm/count/form.h"

namespace halyard::vm {

class Overwritten {
 public:
  using Mark = size_t;

  // `max_runs`: of a box, and of all that are listed.
  explicit Overwritten(uint64_t max_runs) : max_runs_(max_runs) {}
  void clear() { boxes_.clear(); }
  Mark mark() const { return boxes_.size(); }
  // Removes what was added since the mark.
  void go_back(Mark mark) { boxes_.resize(mark); }
  // `size` bytes at each of the offsets, which are in the binding.
  void add(uint32_t binding, uint64_t size, const Form::Steps& offsets);
  // See KernelCounts::overwritten. No value: there would be too many ranges.
  std::optional<std::vector<BindingRange>> ranges() const;

 private:
  struct Dimension {
    uint64_t stride = 0;  // bytes; 0: there is no dimension
    uint64_t trips = 0;
    auto operator<=>(const Dimension&) const = default;
  };
  struct Box {
    uint32_t binding = 0;
    std::array<Dimension, kMaxDimensions> dimensions = {};  // from the smallest stride
    uint64_t begin = 0;
    uint64_t run = 0;  // bytes
    auto operator<=>(const Box&) const = default;

    uint64_t end() const { return begin + run; }
    bool repeats_like(const Box& other) const {
      return binding == other.binding && dimensions == other.dimensions;
    }
    // Makes the run longer while the next run meets it.
    void lengthen();
    uint64_t runs(uint64_t most) const;  // or a number above `most`
    void list(size_t dimension, uint64_t at, std::vector<BindingRange>& to) const;
  };

  static constexpr size_t kMaxBoxes = 1 << 14;

  uint64_t max_runs_;
  std::vector<Box> boxes_;
};

}  // namespace halyard::vm
