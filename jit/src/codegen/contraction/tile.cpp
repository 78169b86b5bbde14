// A tile of rows times vectors needs a register for each sum, one for each vector of B, one for an element of
// A, and one for a product.
#include "codegen/contraction/tile.h"

#include <algorithm>
#include <initializer_list>

namespace halyard::jit::contraction {

namespace {

// Sums that hide the latency of an addition: each waits for its previous term.
constexpr uint64_t kMinSums = 8;
// With several rows, each vector of B is used for each of them, and few vectors suffice.
constexpr uint64_t kVectorsOfRows = 2;
// Three, if that leaves no rest, and if there are enough registers for as many rows as of two.
constexpr uint64_t kMostVectorsOfRows = 3;
constexpr uint64_t kManyRegisters = 32;
constexpr uint64_t kMaxPanelBytes = 32 << 10;  // a panel stays in the first-level cache
// More scalar sums would evict each other's rows from the cache if the row length is a power of two.
constexpr uint64_t kStreams = 4;
constexpr uint64_t kMinLanes = 4;  // as many as a transposed square has at least
// Terms of a block. Rows of B are often a power of two apart, so that few sets of a cache hold them: more
// terms would evict each other before the next tile reads them again.
constexpr uint64_t kMaxBlock = 256;
// With fewer terms, loading and storing the sums would count.
constexpr uint64_t kMinBlock = 64;
constexpr uint64_t kMinPackedRows = 24;
// With more rows, the time in which packing waits for memory does not count.
constexpr uint64_t kMaxPrefetchedRows = 512;
// With more rows, the time of packing is worth less than LLVM's time for a second version of the first tile.
constexpr uint64_t kMaxRowsOfFirstTile = 1024;
// Sums that stay in the second-level cache from one block of terms to the next, beside what they are computed
// from.
constexpr uint64_t kMaxSumsTogether = 32 << 10;
// If threads share the groups, a thread takes many of them at a time, and the last ones one by one, so that
// all threads end at about the same time. A group has at least so many terms: about a microsecond of work.
constexpr uint64_t kMinSharedGroup = uint64_t{1} << 16;
// Rows of a group that packs B again, for this thread, and tiles of rows if the first one packs it.
constexpr uint64_t kMinSharedRows = 4 * kMinPackedRows;
constexpr uint64_t kMinSharedTiles = 2;
// The terms of a nest that are worth sharing, and the rows and outputs of a row that are assumed if their
// number is not known: the tiles of compilers.
constexpr uint64_t kMinShared = uint64_t{1} << 19;
// Likewise for elements of a nest without terms, such as a copy: memory that another thread has written is
// far slower to read than the thread's own.
constexpr uint64_t kMinSharedElements = uint64_t{1} << 16;
constexpr uint64_t kMinSharedGroupOfElements = uint64_t{1} << 12;
constexpr uint64_t kLikelyOutputs = 64;
constexpr uint64_t kLikelyRows = 64;

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
  if (size.outputs == 0) {
    while (lanes > kMinLanes && size.most_outputs != 0 && lanes > size.most_outputs) lanes /= 2;
    return lanes;
  }
  while (lanes > size.outputs) lanes /= 2;
  // With several rows, the rest is added in vectors with fewer lanes, or in one that overlaps another one.
  if (size.rows != 1 && (size.outputs % kMinLanes == 0 || size.outputs <= kVectorsOfRows * lanes))
    return lanes;
  // Half a vector at a time is better than a rest of scalars.
  while (lanes > kMinLanes && size.outputs % lanes != 0) lanes /= 2;
  return lanes;
}

// Whether a panel of three vectors is as small as the largest one of two.
bool may_have_three(const Registers& registers, const Tiling& tiling) {
  return registers.count >= kManyRegisters &&
         (!tiling.is_packed ||
          tiling.terms_of_block * kMostVectorsOfRows * registers.lanes * sizeof(float) <= kMaxPanelBytes);
}

uint64_t vectors_of_tile(const Size& size, uint64_t lanes, bool is_packed, bool may_have_three) {
  if (size.is_transposed) return 1;  // all vectors of a square are in registers
  const bool has_rows = size.rows != 1 || is_packed;
  const uint64_t most = size.is_strided ? kStreams : has_rows ? kVectorsOfRows : kMinSums;
  if (size.outputs == 0)
    return size.most_outputs == 0 ? most : std::clamp<uint64_t>(size.most_outputs / lanes, 1, most);
  if (has_rows && lanes > 1 && may_have_three) {
    const uint64_t all = (size.outputs - 1) / lanes + 1;
    if (all % kVectorsOfRows != 0 && all % kMostVectorsOfRows == 0 &&
        (all == kMostVectorsOfRows || size.outputs % lanes == 0))
      return kMostVectorsOfRows;
  }
  // Without a rest, if there is such a number of vectors.
  for (uint64_t vectors = most; vectors > most / 2; --vectors)
    if (size.outputs % (vectors * lanes) == 0) return vectors;
  return std::clamp<uint64_t>(size.outputs / lanes, 1, most);
}

// A rest of more than one vector is a tile, too, whose last vector overlaps the one before it.
bool is_overlapping_tile(const Size& size, const Tiling::Outputs& first, uint64_t rest) {
  return size.rows != 1 && !size.is_transposed && size.outputs != 0 && first.lanes > kMinLanes &&
         rest > first.lanes && rest % first.lanes != 0 &&
         rest < std::max(first.vectors, kVectorsOfRows) * first.lanes;
}

std::vector<Tiling::Outputs> tiles_of_outputs(const Size& size, Tiling::Outputs first) {
  std::vector<Tiling::Outputs> tiles;
  uint64_t rest = size.outputs;
  const auto add_overlapping = [&] {
    if (!is_overlapping_tile(size, first, rest)) return false;
    const uint64_t vectors = (rest - 1) / first.lanes + 1;
    tiles.push_back({vectors, first.lanes, vectors * first.lanes - rest});
    return true;
  };
  if (add_overlapping()) return tiles;
  // Of an unknown number of outputs, half of many vectors may be left.
  const Tiling::Outputs half = {size.outputs == 0 && first.vectors > 3 ? first.vectors / 2 : 1, first.lanes};
  std::vector<Tiling::Outputs> candidates = {first, half, {1, first.lanes}};
  if (size.outputs != 0)
    for (uint64_t lanes = first.lanes / 2; lanes > kMinLanes; lanes /= 2) candidates.push_back({1, lanes});
  candidates.insert(candidates.end(), {{1, std::min(first.lanes, kMinLanes)}, {1, 1}});
  for (const Tiling::Outputs tile : candidates) {
    if (!tiles.empty() && tile.count() == tiles.back().count()) continue;
    if (size.outputs != 0 && tile.count() > rest) continue;
    tiles.push_back(tile);
    if (size.outputs != 0) rest %= tile.count();
    if (add_overlapping()) break;
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
    most = std::clamp<uint64_t>(sums / tile.vectors, 1, tile.vectors == 1 ? 2 * kMinSums : kMinSums);
  }
  std::vector<uint64_t> tiles = {rows_of_tile(size, most)};
  for (const uint64_t rows : {2, 1})
    if (rows < tiles.back() && (size.rows == 0 || size.rows % tiles.front() >= rows)) tiles.push_back(rows);
  return tiles;
}

// Whether there may be several tiles of rows.
bool has_tiles_of_rows(const Size& size) {
  return size.outer_rows != 1 || size.rows == 0 || size.rows > kMinSums;
}

void choose_block(const Size& size, Tiling& tiling) {
  if (std::find(size.terms.begin(), size.terms.end(), 0u) != size.terms.end()) return;
  uint64_t inside = 1;  // terms of the loops that no block divides
  size_t level = size.terms.size();
  for (; level > 0 && size.terms[level - 1] <= kMaxBlock / inside; --level) inside *= size.terms[level - 1];
  if (level == 0) {
    tiling.terms_of_block = inside;
    return;
  }
  if (!has_tiles_of_rows(size)) return;  // each element of B is read once
  tiling.outer_terms = level;
  tiling.terms_of_block = inside;
  if (inside >= kMinBlock) return;
  --tiling.outer_terms;
  const uint64_t terms = size.terms[tiling.outer_terms], most = kMaxBlock / inside;
  const uint64_t blocks = (terms - 1) / most + 1;
  tiling.block = (terms - 1) / blocks + 1;
  tiling.terms_of_block *= tiling.block;
}

// Packing costs about as much as a row.
bool is_worth_packing(const Size& size, const Tiling& tiling) {
  if (!size.can_pack || tiling.terms_of_block == 0 || !has_tiles_of_rows(size)) return false;
  if (size.is_strided) return true;
  const bool has_many_rows = size.rows == 0 || size.outer_rows == 0 || size.rows >= kMinPackedRows ||
                             size.outer_rows >= kMinPackedRows / size.rows;
  return has_many_rows && tiling.terms_of_block >= kMinBlock;
}

// Whether there may be so few rows that packing is a part of the time that counts.
bool has_few_rows(const Size& size, uint64_t most) {
  return size.rows == 0 || size.outer_rows == 0 || size.rows <= most / size.outer_rows;
}

// The product, up to kMaxGroup; 0 if a factor is not known.
uint64_t terms_of(std::initializer_list<uint64_t> counts, const std::vector<uint64_t>& terms) {
  uint64_t product = 1;
  const auto multiply = [&](uint64_t count) {
    product = std::min(product * std::min(count, kMaxGroup), kMaxGroup);
  };
  for (const uint64_t count : counts) multiply(count);
  for (const uint64_t count : terms) multiply(count);
  return product;
}

void choose_rows_together(const Size& size, Tiling& tiling) {
  if (tiling.outer_terms == 0 && tiling.block == 0) return;
  const bool has_outer_rows = size.outer_rows != 1;
  const uint64_t tile = has_outer_rows ? 1 : tiling.rows.front();
  const uint64_t sums = terms_of({has_outer_rows ? size.rows : 1, size.outputs}, {});  // of a row
  if (sums != 0) tiling.together = std::max(kMaxSumsTogether / sums / tile * tile, tile);
}

void choose_group(const Size& size, Tiling& tiling) {
  const bool has_outer_rows = size.outer_rows != 1;
  const uint64_t tile = has_outer_rows ? 1 : tiling.rows.front();
  const uint64_t rows = has_outer_rows ? size.rows : 1;  // of one iteration of the outermost loop
  const uint64_t outermost = has_outer_rows ? size.outer_rows : size.rows;
  const auto group_of = [&](uint64_t least) {
    return (std::max<uint64_t>(least, 1) - 1) / tile * tile + tile;
  };
  const uint64_t all = terms_of({outermost, rows, size.outputs}, size.terms);
  const bool is_long = size.is_elementwise ? all >= kMinSharedElements : all == 0 || all >= kMinShared;
  if (outermost != 1 && is_long) {
    const uint64_t likely_rows = rows == 0 ? kLikelyRows : rows;
    const uint64_t terms =
        terms_of({likely_rows, size.outputs == 0 ? kLikelyOutputs : size.outputs}, size.terms);
    const uint64_t least_terms = size.is_elementwise ? kMinSharedGroupOfElements : kMinSharedGroup;
    uint64_t least = terms == 0 ? 1 : (least_terms - 1) / terms + 1;
    if (tiling.is_packed) {
      const uint64_t packed =
          tiling.packs_first_tile ? kMinSharedTiles * tiling.rows.front() : kMinSharedRows;
      least = std::max(least, (packed - 1) / likely_rows + 1);
    }
    tiling.group = group_of(least);
    tiling.is_shared = outermost == 0 || tiling.group < outermost;
    if (tiling.is_shared) return;
  }
  const uint64_t terms = terms_of({rows, size.outputs}, size.terms);
  tiling.group = terms == 0 ? tile : std::max(kMaxGroup / terms / tile * tile, tile);
}

}  // namespace

Tiling choose_tiling(const Size& size, const Registers& registers) {
  Tiling tiling;
  choose_block(size, tiling);
  tiling.is_packed = is_worth_packing(size, tiling);
  tiling.prefetches = tiling.is_packed && has_few_rows(size, kMaxPrefetchedRows);
  Size read = size;  // as tiles read B
  if (tiling.is_packed) read.is_strided = read.is_transposed = false;
  if (size.is_elementwise) read.rows = 1;  // elements of a row are next to each other
  const uint64_t lanes = lanes_of_tile(read, registers);
  const uint64_t vectors = vectors_of_tile(read, lanes, tiling.is_packed, may_have_three(registers, tiling));
  tiling.outputs = tiles_of_outputs(read, {vectors, lanes});
  tiling.rows = tiles_of_rows(read, registers, tiling.outputs.front());
  tiling.packs_first_tile = tiling.is_packed && !size.is_strided && has_few_rows(size, kMaxRowsOfFirstTile);
  choose_rows_together(size, tiling);
  choose_group(size, tiling);
  return tiling;
}

}  // namespace halyard::jit::contraction
