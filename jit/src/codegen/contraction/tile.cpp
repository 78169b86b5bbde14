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
constexpr uint64_t kMinLanes = 4;  // as many as a transposed square has at least

// The number of rows of a tile whose rest is smallest, of those that fit in registers.
uint64_t rows_of_tile(const Size& size, uint64_t most) {
  if (size.rows == 0) return most;
  if (size.rows <= most) return size.rows;
  uint64_t best = most;
  for (uint64_t rows = most; rows > most / 2; --rows)
    if (size.rows % rows < size.rows % best) best = rows;
  return best;
}

uint64_t lanes_of_tile(const Size& size, const Registers& registers) {
  if (size.is_strided && !size.is_transposed) return 1;
  uint64_t lanes = registers.lanes;
  if (size.outputs == 0) return lanes;
  while (lanes > size.outputs) lanes /= 2;
  // Half a vector at a time is better than a rest of scalars.
  while (lanes > kMinLanes && size.outputs % lanes != 0) lanes /= 2;
  return lanes;
}

uint64_t vectors_of_tile(const Size& size, uint64_t lanes) {
  if (size.is_transposed) return 1;  // all vectors of a square are in registers
  const uint64_t most = size.is_strided ? kStreams : size.rows != 1 ? kVectorsOfRows : kMinSums;
  if (size.outputs == 0) return most;
  // Without a rest, if there is such a number of vectors.
  for (uint64_t vectors = most; vectors > most / 2; --vectors)
    if (size.outputs % (vectors * lanes) == 0) return vectors;
  return std::clamp<uint64_t>(size.outputs / lanes, 1, most);
}

std::vector<Tiling::Outputs> tiles_of_outputs(const Size& size, Tiling::Outputs first) {
  std::vector<Tiling::Outputs> tiles;
  uint64_t rest = size.outputs;
  for (const Tiling::Outputs tile :
       {first, {1, first.lanes}, {1, std::min(first.lanes, kMinLanes)}, {1, 1}}) {
    if (!tiles.empty() && tile.count() == tiles.back().count()) continue;
    if (size.outputs != 0 && tile.count() > rest) continue;
    tiles.push_back(tile);
    if (size.outputs != 0) rest %= tile.count();
    if (size.outputs != 0 ? rest == 0 : size.output_multiple % tile.count() == 0) break;
  }
  return tiles;
}

std::vector<uint64_t> tiles_of_rows(const Size& size, const Registers& registers, Tiling::Outputs tile) {
  if (size.rows == 1) return {1};
  uint64_t most = kStreams;
  if (tile.lanes > 1) {
    const uint64_t others = tile.vectors * (size.is_transposed ? tile.lanes : 1) + 2;
    const uint64_t sums = std::max(registers.count, others + 1) - others;
    most = std::clamp<uint64_t>(sums / tile.vectors, 1, kMinSums);
  }
  std::vector<uint64_t> tiles = {rows_of_tile(size, most)};
  for (const uint64_t rows : {2, 1})
    if (rows < tiles.back() && (size.rows == 0 || size.rows % tiles.front() >= rows)) tiles.push_back(rows);
  return tiles;
}

}  // namespace

Tiling choose_tiling(const Size& size, const Registers& registers) {
  const uint64_t lanes = lanes_of_tile(size, registers);
  const Tiling::Outputs tile = {vectors_of_tile(size, lanes), lanes};
  return {tiles_of_rows(size, registers, tile), tiles_of_outputs(size, tile)};
}

}  // namespace halyard::jit::contraction
