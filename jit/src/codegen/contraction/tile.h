// Decides how many outputs are summed at a time, in registers.
#pragma once

#include <cstdint>
#include <vector>

namespace halyard::jit::contraction {

// What the decision depends on.
struct Size {
  uint64_t rows = 1;             // 0: not known
  uint64_t outputs = 0;          // of a row; 0: not known
  uint64_t output_multiple = 1;  // the number of outputs is a multiple of this
  // Elements of B for consecutive outputs are not contiguous: one vector after the other is loaded along the
  // terms, and transposed; or, if they cannot be, outputs are scalars.
  bool is_strided = false;
  bool is_transposed = false;
};
struct Registers {
  uint64_t count = 16;
  uint64_t lanes = 1;  // elements of a vector
};

struct Tiling {
  // Rows of a tile. Each further number is for the rows that the ones before it leave.
  std::vector<uint64_t> rows;
  // Outputs of a tile, likewise, as a number of vectors with a number of lanes.
  struct Outputs {
    uint64_t vectors, lanes;
    uint64_t count() const { return vectors * lanes; }
  };
  std::vector<Outputs> outputs;
};

Tiling choose_tiling(const Size& size, const Registers& registers);

}  // namespace halyard::jit::contraction
