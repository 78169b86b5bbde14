// Decides how many outputs are summed at a time, in registers, and which terms are added before the next
// outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace halyard::jit::contraction {

// What the decision depends on.
struct Size {
  uint64_t rows = 1;             // of the innermost loop over rows; 0: not known
  uint64_t outputs = 0;          // of a row; 0: not known
  uint64_t output_multiple = 1;  // the number of outputs is a multiple of this
  // Elements of B for consecutive outputs are not contiguous: one vector after the other is loaded along the
  // terms, and transposed; or, if they cannot be, outputs are scalars.
  bool is_strided = false;
  bool is_transposed = false;
  bool can_pack = false;        // B's elements are the same for all rows
  uint64_t outer_rows = 1;      // of the loop around the one over rows; 0: not known
  std::vector<uint64_t> terms;  // of each loop, from outside in; 0: not known
  uint64_t most_outputs = 0;    // if their number is not known; 0: not known either
  bool is_elementwise = false;  // outputs are no sums
};
struct Registers {
  uint64_t count = 16;
  uint64_t lanes = 1;  // elements of a vector
};

// The most terms of a group of rows, if several tiles of rows have fewer: about a millisecond of work.
inline constexpr uint64_t kMaxGroup = uint64_t{1} << 25;

struct Tiling {
  // Rows of a tile. Each further number is for the rows that the ones before it leave.
  std::vector<uint64_t> rows;
  // Outputs of a tile, likewise, as a number of vectors with a number of lanes.
  struct Outputs {
    uint64_t vectors, lanes;
    // So many outputs of the last vector are those of the vector before it, too. Both sum the same terms.
    uint64_t overlap = 0;
    uint64_t in_vectors() const { return vectors * lanes; }  // those that overlap twice
    uint64_t count() const { return in_vectors() - overlap; }
    // The first output of a vector.
    uint64_t first(uint64_t vector) const { return vector * lanes - (vector + 1 == vectors ? overlap : 0); }
  };
  std::vector<Outputs> outputs;

  // The terms that are added to all outputs of a group of rows before the next terms: of this many outer
  // loops one iteration, of the loop in them a block of this many (0: all), and all of the loops in that one.
  size_t outer_terms = 0;
  uint64_t block = 0;
  uint64_t terms_of_block = 0;  // 0: not known
  bool is_packed = false;  // B's elements for a block and a tile of outputs are copied next to each other
  bool packs_first_tile = false;  // by the first tile of rows, which reads B itself, not before it
  bool prefetches = false;        // B's elements that are packed next are prefetched meanwhile
  // Rows of a group, of the outermost loop. The stop word is checked after each group.
  uint64_t group = 1;
  bool is_shared = false;  // threads may share the groups
  // The most rows that add a block of terms before the next block, of the outermost loop; 0: all of a group,
  // or of the groups that a thread runs.
  uint64_t together = 0;
};

Tiling choose_tiling(const Size& size, const Registers& registers);

}  // namespace halyard::jit::contraction
