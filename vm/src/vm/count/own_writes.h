// OwnWrites: the bytes that a workgroup has certainly written so far, to find reads of bytes that it wrote
// itself. The writes of a loop that is being counted are those of one iteration; once it has ended, those of
// all iterations.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vm/count/form.h"
#include "vm/count/scalar.h"

namespace halyard::vm {

class OwnWrites {
 public:
  using Mark = size_t;
  using Trips = std::array<uint64_t, kMaxDimensions>;

  void clear() { writes_.clear(); }
  Mark mark() const { return writes_.size(); }
  // Removes what was added since the mark.
  void go_back(Mark mark) { writes_.resize(mark); }
  // `size` bytes at the offset, which is in the binding.
  void add(uint32_t binding, uint64_t size, const Form& offset);
  // The loop of this dimension has ended, which began at the mark.
  void end_loop(Mark mark, int dimension, const Trips& trips);
  bool has(uint32_t binding) const {
    return std::ranges::any_of(writes_, [&](const Write& write) { return write.binding == binding; });
  }
  // Whether `size` bytes at the offset, in all iterations, have been written. May say no if they have.
  bool cover(uint32_t binding, uint64_t size, const Form& offset, const Trips& trips) const;

 private:
  struct Write {
    uint32_t binding = 0;
    uint64_t size = 0;
    Form open;           // how it varies along the grid and loops that have not ended
    Form::Steps closed;  // along loops that have
  };
  static constexpr size_t kMaxWrites = 64;
  static constexpr uint64_t kMaxRuns = 1 << 11;

  std::vector<Write> writes_;
};

}  // namespace halyard::vm
