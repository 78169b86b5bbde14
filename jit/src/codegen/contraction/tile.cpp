// A tile of rows times vectors needs a register for each sum, one for each vector of B, one for an element of
// A, and one for a product.
#include "codegen/contraction/tile.h"

#include <algorithm>

namespace halyard::jit::contraction {

namespace {

// Sums that hide the latency of an addition: each waits for its previous term.
constexpr uint64_t kMinSums = 8;
// With several rows, each vector of B is used for each of them, and few vectors suffice.
constexpr uint64_t kVectorsOfRows = 2;
// More scalar sums would evict each other's rows from the cache if the row length is a power of two.
constexpr uint64_t kStreams = 4;

bool is_multiple(const Size& size, uint64_t of) {
  return size.outputs != 0 ? size.outputs % of == 0 : size.output_multiple % of == 0;
}

// The number of rows of a tile whose rest is smallest, of those that fit in registers.
uint64_t rows_of_tile(const Size& size, uint64_t most) {
  if (size.rows == 0) return most;
  if (size.rows <= most) return size.rows;
  uint64_t best = most;
  for (uint64_t rows = most; rows > most / 2; --rows)
    if (size.rows % rows < size.rows % best) best = rows;
  return best;
}

}  // namespace

Tiling choose_tiling(const Size& size, const Registers& registers) {
  Tiling tiling;
  const bool has_rows = size.rows != 1;
  const bool is_scalar = size.is_strided && !size.is_transposed;
  const uint64_t lanes = is_scalar ? 1 : registers.lanes;
  uint64_t vectors = is_scalar ? kStreams : has_rows ? kVectorsOfRows : kMinSums;
  // Of a transposed square, all vectors are in registers.
  if (size.is_transposed) vectors = 1;
  if (size.outputs != 0) vectors = std::clamp<uint64_t>(size.outputs / lanes, 1, vectors);
  // Without a rest, if there is such a number of vectors.
  for (uint64_t fewer = vectors; fewer > 1 && fewer * 2 > vectors; --fewer) {
    if (!is_multiple(size, fewer * lanes)) continue;
    vectors = fewer;
    break;
  }
  if (has_rows) {
    const uint64_t others = vectors * (size.is_transposed ? lanes : 1) + 2;
    const uint64_t sums = std::max(registers.count, others + 1) - others;
    const uint64_t most = is_scalar ? kStreams : std::clamp<uint64_t>(sums / vectors, 1, kMinSums);
    tiling.rows.push_back(rows_of_tile(size, most));
    if (size.rows == 0 || size.rows % tiling.rows[0] > 1) tiling.rows.push_back(2);
  }
  if (tiling.rows.empty() || tiling.rows.back() != 1) tiling.rows.push_back(1);
  tiling.outputs.push_back({vectors, lanes});
  if (!is_multiple(size, vectors * lanes)) {
    if (vectors > 1 && lanes > 1) tiling.outputs.push_back({1, lanes});
    if (!is_multiple(size, lanes)) tiling.outputs.push_back({1, 1});
  }
  if (lanes == 1 && tiling.outputs.back().count() != 1 && !is_multiple(size, vectors))
    tiling.outputs.push_back({1, 1});
  return tiling;
}

}  // namespace halyard::jit::contraction
