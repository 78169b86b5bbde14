// Converts a strided shape to long rows of contiguous elements, which suit vectors. The plain loops handle
// shapes without such a form, and operands that partially overlap, because the order of the loops defines the
// result.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "operands.h"

namespace halyard::local::vmvx {

// Operands of one shape; the last one is the output.
template <size_t kCount>
struct Rows {
  struct Operand {
    const uint8_t* data;
    uint64_t stride0, stride1;

    bool operator==(const Operand&) const = default;
  };
  std::array<Operand, kCount> operands;
  uint64_t size0, size1;

  // Merges consecutive rows, or swaps the dimensions, so that the output's elements are contiguous within a
  // row. False: this is impossible, or would change the result of overlapping operands.
  bool arrange(uint64_t element_size) {
    Operand& out = operands.back();
    if (size0 != 1 && (size1 == 1 || (out.stride1 != 1 && out.stride0 == 1))) turn();
    if (std::ranges::all_of(operands, [&](const Operand& o) { return o.stride0 == o.stride1 * size1; })) {
      size1 *= size0;
      size0 = 1;
    }
    if (out.stride1 != 1 && size1 != 1) return false;
    if (size0 != 1 && out.stride0 < size1) return false;
    const auto end = [&](const Operand& o) {
      return o.data + ((size0 - 1) * o.stride0 + (size1 - 1) * o.stride1 + 1) * element_size;
    };
    return std::ranges::all_of(
        operands, [&](const Operand& o) { return o == out || end(o) <= out.data || end(out) <= o.data; });
  }
  const uint8_t* row(size_t operand, uint64_t index, uint64_t element_size) const {
    return operands[operand].data + index * operands[operand].stride0 * element_size;
  }

 private:
  void turn() {
    std::swap(size0, size1);
    for (Operand& operand : operands) std::swap(operand.stride0, operand.stride1);
  }
};

}  // namespace halyard::local::vmvx
