// Packs matrices with dense rows into tiles, and unpacks them. Within a tile, either pieces of rows follow
// each other ("runs"), or elements of several rows alternate ("interleaved"). A tile with one column, or with
// a few columns that together have the size of a larger element, is also interleaved. The plain loops handle
// partial tiles at the edges and rare layouts.
#include "simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vmvx/tiles_simd.cpp"
#include <hwy/foreach_target.h>
// These must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

#include "scalar.h"
#include "simd.h"
#include "transpose-inl.h"

#if VMVX_HAS_KERNELS
HWY_BEFORE_NAMESPACE();
namespace halyard::local::vmvx::HWY_NAMESPACE {
namespace {

using U32s = hn::ScalableTag<uint32_t>;
using U16s = hn::ScalableTag<uint16_t>;
using U8s = hn::ScalableTag<uint8_t>;
constexpr U32s u32s;
constexpr U16s u16s;
constexpr U8s u8s;
using V = hn::Vec<U32s>;
constexpr size_t kLanes = HWY_LANES(uint32_t);
constexpr size_t kVector = kLanes * 4;  // bytes
constexpr size_t kBlocks = kLanes / 4;  // of 16 bytes; vectors are interleaved within them

constexpr uint64_t kLine = 64;  // bytes of a cache line
// The number of tile rows written side by side: as many as the hardware prefetcher can track.
constexpr uint64_t kPanels = 8;
constexpr uint64_t kAhead = 4096;  // bytes to prefetch
// Larger outputs bypass the caches, like memcpy, because the data would be evicted before it is used.
constexpr uint64_t kStreamed = uint64_t{1} << 24;
// For larger outputs, each tile column writes to, or reads from, a separate page. So rows are packed in
// blocks of this many bytes and this many tile columns, while the next block is prefetched. Unpacking
// processes a tile row of at most this many bytes as a whole, while the next one is prefetched.
constexpr uint64_t kPackedBlock = 64 << 10;
constexpr uint64_t kPackedPanels = 32;
constexpr uint64_t kUnpackedRow = 512 << 10;

// ---- Tiles as bytes

// Runs: `rows` pieces of `columns` units of `unit` bytes. Interleaved: units of `rows` rows alternate.
struct Layout {
  uint64_t rows;     // of the matrix in a tile
  uint64_t columns;  // of the matrix in a tile, in units
  uint64_t unit;     // bytes
  bool interleaved;
  uint64_t tile;          // bytes
  uint64_t stride;        // bytes between rows of the matrix
  uint64_t tile_stride0;  // bytes
};

template <typename T>
Layout layout_of(const Tiling& tiling) {
  Layout layout = {.rows = tiling.extent0(),
                   .columns = tiling.extent1(),
                   .unit = sizeof(T),
                   .interleaved = tiling.inner_transposed && tiling.extent0() != 1,
                   .tile = tiling.t0 * tiling.t1 * sizeof(T),
                   .stride = tiling.stride0 * sizeof(T),
                   .tile_stride0 = tiling.tile_stride0 * sizeof(T)};
  if (!layout.interleaved && layout.columns * sizeof(T) == 4 && layout.rows != 1)
    layout = {.rows = layout.rows,
              .columns = 1,
              .unit = 4,
              .interleaved = true,
              .tile = layout.tile,
              .stride = layout.stride,
              .tile_stride0 = layout.tile_stride0};
  return layout;
}

// ---- Moves

HWY_INLINE V load_vector(const uint8_t* at) { return hn::LoadU(u32s, reinterpret_cast<const uint32_t*>(at)); }
template <bool kStream>
HWY_INLINE void store_vector(V value, uint8_t* at) {
  auto* const to = reinterpret_cast<uint32_t*>(at);
  if constexpr (kStream) {
    hn::Stream(value, u32s, to);
  } else {
    hn::StoreU(value, u32s, to);
  }
}

template <bool kStream>
HWY_INLINE void copy_line(const uint8_t* from, uint8_t* to) {
  VMVX_UNROLL
  for (size_t at = 0; at < kLine; at += kVector) store_vector<kStream>(load_vector(from + at), to + at);
}

// Transposes blocks: block j of vector i goes to block i of vector j.
HWY_INLINE void transpose_blocks(V (&v)[kBlocks]) {
  if constexpr (kBlocks == 2) {
    const V first = v[0];
    v[0] = hn::ConcatLowerLower(u32s, v[1], first);
    v[1] = hn::ConcatUpperUpper(u32s, v[1], first);
  } else if constexpr (kBlocks == 4) {
    const V low02 = hn::ConcatLowerLower(u32s, v[2], v[0]);
    const V low13 = hn::ConcatLowerLower(u32s, v[3], v[1]);
    const V high02 = hn::ConcatUpperUpper(u32s, v[2], v[0]);
    const V high13 = hn::ConcatUpperUpper(u32s, v[3], v[1]);
    v[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low13), low02);
    v[1] = hn::OddEvenBlocks(low13, hn::SwapAdjacentBlocks(low02));
    v[2] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high13), high02);
    v[3] = hn::OddEvenBlocks(high13, hn::SwapAdjacentBlocks(high02));
  }
}

// Transposes kLanes by kLanes elements of 4 bytes, whose rows are `from_stride` bytes apart.
template <bool kStream>
HWY_INLINE void transpose_square(const uint8_t* from, uint64_t from_stride, uint8_t* to, uint64_t to_stride) {
  V rows[kBlocks][4];
  VMVX_UNROLL
  for (size_t group = 0; group < kBlocks; ++group) {
    VMVX_UNROLL
    for (size_t i = 0; i < 4; ++i) rows[group][i] = load_vector(from + (group * 4 + i) * from_stride);
    transpose_within_blocks(u32s, rows[group]);
  }
  VMVX_UNROLL
  for (size_t i = 0; i < 4; ++i) {
    V columns[kBlocks];
    VMVX_UNROLL
    for (size_t group = 0; group < kBlocks; ++group) columns[group] = rows[group][i];
    transpose_blocks(columns);
    VMVX_UNROLL
    for (size_t block = 0; block < kBlocks; ++block)
      store_vector<kStream>(columns[block], to + (block * 4 + i) * to_stride);
  }
}

// Transposes 4 x 4 elements of 4 bytes.
HWY_INLINE void transpose_small(const uint8_t* from, uint64_t from_stride, uint8_t* to, uint64_t to_stride) {
  const hn::CappedTag<uint32_t, 4> d;
  hn::Vec<decltype(d)> v[4];
  VMVX_UNROLL
  for (size_t i = 0; i < 4; ++i)
    v[i] = hn::LoadU(d, reinterpret_cast<const uint32_t*>(from + i * from_stride));
  transpose_within_blocks(d, v);
  VMVX_UNROLL
  for (size_t i = 0; i < 4; ++i) hn::StoreU(v[i], d, reinterpret_cast<uint32_t*>(to + i * to_stride));
}

// Transposes `rows` x `columns` elements of 4 bytes: (i, j) goes to (j, i).
template <bool kStream>
HWY_INLINE void transpose(const uint8_t* from, uint64_t from_stride, uint8_t* to, uint64_t to_stride,
                          uint64_t rows, uint64_t columns) {
  const uint64_t full_rows = rows / kLanes * kLanes;
  const uint64_t full_columns = columns / kLanes * kLanes;
  for (uint64_t j = 0; j < full_columns; j += kLanes)
    for (uint64_t i = 0; i < full_rows; i += kLanes)
      transpose_square<kStream>(from + i * from_stride + j * 4, from_stride, to + j * to_stride + i * 4,
                                to_stride);
  const uint64_t small_rows = rows / 4 * 4;
  const uint64_t small_columns = columns / 4 * 4;
  for (uint64_t i = 0; i < small_rows; i += 4)
    for (uint64_t j = i < full_rows ? full_columns : 0; j < small_columns; j += 4)
      transpose_small(from + i * from_stride + j * 4, from_stride, to + j * to_stride + i * 4, to_stride);
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = i < small_rows ? small_columns : 0; j < columns; ++j)
      store(to + j * to_stride + i * 4, load<uint32_t>(from + i * from_stride + j * 4));
}

// Interleaves the bytes of four rows: kBlocks tiles of 16 columns each.
template <bool kStream>
HWY_INLINE void interleave4(const uint8_t* from, uint64_t stride, uint8_t* to, uint64_t tile_step) {
  const auto row = [&](size_t i) { return hn::BitCast(u8s, load_vector(from + i * stride)); };
  const auto low01 = hn::BitCast(u16s, hn::InterleaveLower(u8s, row(0), row(1)));
  const auto low23 = hn::BitCast(u16s, hn::InterleaveLower(u8s, row(2), row(3)));
  const auto high01 = hn::BitCast(u16s, hn::InterleaveUpper(u8s, row(0), row(1)));
  const auto high23 = hn::BitCast(u16s, hn::InterleaveUpper(u8s, row(2), row(3)));
  // Each vector contains 16 bytes of each tile, in the block with the tile's number.
  const V parts[4] = {hn::BitCast(u32s, hn::InterleaveLower(u16s, low01, low23)),
                      hn::BitCast(u32s, hn::InterleaveUpper(u16s, low01, low23)),
                      hn::BitCast(u32s, hn::InterleaveLower(u16s, high01, high23)),
                      hn::BitCast(u32s, hn::InterleaveUpper(u16s, high01, high23))};
  VMVX_UNROLL
  for (size_t part = 0; part < 4; part += kBlocks) {
    V tiles[kBlocks];
    VMVX_UNROLL
    for (size_t i = 0; i < kBlocks; ++i) tiles[i] = parts[part + i];
    transpose_blocks(tiles);
    VMVX_UNROLL
    for (size_t i = 0; i < kBlocks; ++i) store_vector<kStream>(tiles[i], to + i * tile_step + part * 16);
  }
}

// Interleaves units of 4 bytes of four rows: kLanes columns of tiles with 8 columns.
template <bool kStream>
HWY_INLINE void interleave4_units(const uint8_t* from, uint64_t stride, uint8_t* to, uint64_t tile_step) {
  V rows[4];
  VMVX_UNROLL
  for (size_t i = 0; i < 4; ++i) rows[i] = load_vector(from + i * stride);
  transpose_within_blocks(u32s, rows);
  // Block b of vector i is column 4 * b + i.
  VMVX_UNROLL
  for (size_t part = 0; part < 4; part += kBlocks) {
    V columns[kBlocks];
    VMVX_UNROLL
    for (size_t i = 0; i < kBlocks; ++i) columns[i] = rows[part + i];
    transpose_blocks(columns);
    VMVX_UNROLL
    for (size_t b = 0; b < kBlocks; ++b)
      store_vector<kStream>(columns[b], to + b / 2 * tile_step + (b % 2 * 4 + part) * 16);
  }
}

// ---- Matrix to tiles

// `count0` tile rows of `count1` tiles each, and the distances between them in bytes.
struct Steps {
  uint64_t count0, count1;
  uint64_t tile0, tile1;
  uint64_t ahead = 0;  // bytes from this call's input to the next call's; 0: unknown
};
using PackTiles = void (*)(const Layout& layout, const Steps& steps, const uint8_t* matrix, uint8_t* tiles);

// For runs of kRun bytes, or of any length if it is 0. The loops use copies of the numbers, because a store
// of bytes might change the originals.
template <size_t kRun>
void pack_runs(const Layout& layout, const Steps& steps, const uint8_t* matrix, uint8_t* tiles) {
  const auto [rows, columns, unit, interleaved, tile, stride, tile_stride0] = layout;
  const auto [count0, count1, tile0, tile1, ahead] = steps;
  const uint64_t run = kRun ? kRun : columns * unit;
  for (uint64_t x = 0; x < count0; ++x)
    for (uint64_t p = 0; p < rows; ++p)
      for (uint64_t y = 0; y < count1; ++y)
        std::memcpy(tiles + x * tile0 + y * tile1 + p * run, matrix + (x * rows + p) * stride + y * run, run);
}
// For runs of one cache line.
template <bool kStream>
void pack_lines(const Layout& layout, const Steps& steps, const uint8_t* matrix, uint8_t* tiles) {
  const uint64_t rows = steps.count0 * layout.rows;
  const uint64_t rows_ahead = kAhead / (steps.count1 * kLine);
  for (uint64_t x = 0; x < steps.count0; ++x) {
    for (uint64_t p = 0; p < layout.rows; ++p) {
      const uint64_t row = x * layout.rows + p;
      const uint8_t* const from = matrix + row * layout.stride;
      // Prefetches, because the pieces of rows are too short for the hardware prefetcher.
      const uint64_t ahead = steps.ahead               ? steps.ahead
                             : row + rows_ahead < rows ? rows_ahead * layout.stride
                                                       : 0;
      uint8_t* to = tiles + x * steps.tile0 + p * kLine;
      for (uint64_t y = 0; y < steps.count1; ++y, to += steps.tile1) {
        hwy::Prefetch(from + ahead + y * kLine);
        copy_line<kStream>(from + y * kLine, to);
      }
    }
  }
}
template <bool kStream>
void pack_units(const Layout& layout, const Steps& steps, const uint8_t* matrix, uint8_t* tiles) {
  const auto [rows, tile_columns, unit, interleaved, tile, stride, tile_stride0] = layout;
  const auto [count0, count1, tile0, tile1, ahead] = steps;
  // Contiguous tiles are like one tile with more columns.
  const bool dense = tile1 == tile;
  const uint64_t columns = dense ? tile_columns * count1 : tile_columns;
  for (uint64_t x = 0; x < count0; ++x)
    for (uint64_t y = 0; y < (dense ? 1 : count1); ++y)
      transpose<kStream>(matrix + x * rows * stride + y * columns * 4, stride, tiles + x * tile0 + y * tile1,
                         rows * 4, rows, columns);
}
bool small_tiles(const Layout& layout) {
  return layout.interleaved && layout.unit == 4 && layout.rows == 4 && layout.columns == 8;
}
// For units of 4 bytes, and tiles of four rows and 8 columns.
template <bool kStream>
void pack_few_units(const Layout& layout, const Steps& steps, const uint8_t* matrix, uint8_t* tiles) {
  const uint64_t stride = layout.stride;
  const uint64_t tile_step = steps.tile1;
  const uint64_t columns = steps.count1 * 8;
  const uint64_t full = columns / kLanes * kLanes;
  for (uint64_t x = 0; x < steps.count0; ++x) {
    const uint8_t* const from = matrix + x * 4 * stride;
    uint8_t* const to = tiles + x * steps.tile0;
    const auto at = [&](uint64_t column) { return to + column / 8 * tile_step + column % 8 * 16; };
    for (uint64_t j = 0; j < full; j += kLanes) {
      if constexpr (kStream)
        for (uint64_t i = 0; i < 4; ++i) hwy::Prefetch(from + steps.ahead + i * stride + j * 4);
      interleave4_units<kStream>(from + j * 4, stride, at(j), tile_step);
    }
    for (uint64_t j = full; j < columns; j += 4) transpose_small(from + j * 4, stride, at(j), 16);
  }
}
// For tiles of four rows and 16 columns.
template <bool kStream>
void pack_bytes(const Layout& layout, const Steps& steps, const uint8_t* matrix, uint8_t* tiles) {
  for (uint64_t x = 0; x < steps.count0; ++x) {
    const uint8_t* const from = matrix + x * 4 * layout.stride;
    const uint64_t ahead = steps.ahead ? steps.ahead : x + 2 < steps.count0 ? 8 * layout.stride : 0;
    uint8_t* const to = tiles + x * steps.tile0;
    uint64_t y = 0;
    for (; y + kBlocks <= steps.count1; y += kBlocks) {
      for (uint64_t p = 0; p < 4; ++p) hwy::Prefetch(from + p * layout.stride + ahead + y * 16);
      interleave4<kStream>(from + y * 16, layout.stride, to + y * steps.tile1, steps.tile1);
    }
    for (; y < steps.count1; ++y)
      for (uint64_t i = 0; i < kLine; ++i)
        to[y * steps.tile1 + i] = from[i % 4 * layout.stride + y * 16 + i / 4];
  }
}

// For tiles of four rows and 8 columns: half a cache line, so two tiles below each other are packed together.
template <bool kStream>
void pack_few_bytes(const Layout& layout, const Steps& steps, const uint8_t* matrix, uint8_t* tiles) {
  const hn::CappedTag<uint8_t, 16> bytes;
  const hn::CappedTag<uint16_t, 8> pairs;
  const auto [rows, columns, unit, interleaved, tile, stride, tile_stride0] = layout;
  const auto [count0, count1, tile0, tile1, ahead] = steps;
  for (uint64_t first = 0; first < count0; first += 2) {
    for (uint64_t y = 0; y < count1; ++y) {
      for (uint64_t x = first; x < std::min(first + 2, count0); ++x) {
        const uint8_t* from = matrix + x * 4 * stride + y * 8;
        hn::Vec<decltype(bytes)> row[4];
        VMVX_UNROLL
        for (size_t i = 0; i < 4; ++i, from += stride) {
          if (y % 8 == 0) hwy::Prefetch(from + ahead);
          row[i] = hn::ZeroExtendVector(bytes, hn::LoadU(hn::Half<decltype(bytes)>(), from));
        }
        const auto pairs01 = hn::BitCast(pairs, hn::InterleaveLower(bytes, row[0], row[1]));
        const auto pairs23 = hn::BitCast(pairs, hn::InterleaveLower(bytes, row[2], row[3]));
        uint8_t* const to = tiles + x * tile0 + y * tile1;
        const auto low = hn::BitCast(bytes, hn::InterleaveLower(pairs, pairs01, pairs23));
        const auto high = hn::BitCast(bytes, hn::InterleaveUpper(pairs, pairs01, pairs23));
        if constexpr (kStream) {
          hn::Stream(low, bytes, to);
          hn::Stream(high, bytes, to + 16);
        } else {
          hn::StoreU(low, bytes, to);
          hn::StoreU(high, bytes, to + 16);
        }
      }
    }
  }
}

template <bool kStream>
PackTiles pack_function(const Layout& layout) {
  if (!layout.interleaved) switch (layout.columns * layout.unit) {
      case 16:
        return pack_runs<16>;
      case 32:
        return pack_runs<32>;
      case kLine:
        return pack_lines<kStream>;
      default:
        return pack_runs<0>;
    }
  if (small_tiles(layout)) return pack_few_units<kStream>;
  if (layout.unit == 4) return pack_units<kStream>;
  if (layout.unit == 1 && layout.rows == 4 && layout.columns == 16) return pack_bytes<kStream>;
  if (layout.unit == 1 && layout.rows == 4 && layout.columns == 8) return pack_few_bytes<kStream>;
  return nullptr;
}

// Whether whole cache lines are written one after the other.
bool can_stream(const uint8_t* tiles, const Layout& layout) {
  const bool whole = !layout.interleaved ? layout.columns * layout.unit == kLine
                     : layout.unit == 1  ? true  // pack_bytes, pack_few_bytes
                                         : small_tiles(layout) || layout.rows * layout.unit == kLine;
  return whole && reinterpret_cast<uintptr_t>(tiles) % kLine == 0 && layout.tile_stride0 % kLine == 0;
}

template <typename T>
void pack(const uint8_t* matrix, uint8_t* tiles, const Tiling& tiling, uint64_t padding) {
  const Layout layout = layout_of<T>(tiling);
  const bool large = tiling.o0 * tiling.o1 * layout.tile >= kStreamed;
  const bool stream = large && can_stream(tiles, layout);
  const PackTiles function = stream ? pack_function<true>(layout) : pack_function<false>(layout);
  if (!function || tiling.stride1 != 1 || tiling.overlaps(matrix, tiles, sizeof(T)))
    return scalar::pack<T>(matrix, tiles, tiling, padding);
  const uint64_t tile_step = tiling.outer_transposed ? layout.tile_stride0 : layout.tile;
  const uint64_t x_step = tiling.outer_transposed ? layout.tile : layout.tile_stride0;
  // The tiles that the matrix covers completely.
  const uint64_t full0 = tiling.size0 / tiling.extent0();
  const uint64_t full1 = tiling.size1 / tiling.extent1();
  const uint64_t width = tiling.extent1() * sizeof(T);
  const bool blocked = large && tiling.outer_transposed;
  const uint64_t tile_row = layout.rows * layout.stride;
  const uint64_t block =
      std::max<uint64_t>(1, blocked ? kPackedBlock / std::max<uint64_t>(1, tile_row) : full0);
  const uint64_t panels = blocked                   ? kPackedPanels
                          : tiling.outer_transposed ? kPanels
                                                    : std::max<uint64_t>(1, full1);
  for (uint64_t x = 0; x < full0; x += block) {
    const uint64_t ahead = x + 2 * block <= full0 ? block * tile_row : 0;
    for (uint64_t y = 0; y < full1; y += panels)
      function(layout, {std::min(block, full0 - x), std::min(panels, full1 - y), x_step, tile_step, ahead},
               matrix + x * tile_row + y * width, tiles + x * x_step + y * tile_step);
  }
  if (stream) hwy::FlushStream();
  for (uint64_t x = 0; x < tiling.grid0(); ++x)
    for (uint64_t y = x < full0 ? full1 : 0; y < tiling.grid1(); ++y)
      scalar::pack_tile<T>(matrix, tiles, tiling, padding, x, y);
}

// ---- Tiles to matrix, in the same way

using UnpackTiles = void (*)(const Layout& layout, const Steps& steps, const uint8_t* tiles, uint8_t* matrix);

template <size_t kRun>
void unpack_runs(const Layout& layout, const Steps& steps, const uint8_t* tiles, uint8_t* matrix) {
  const auto [rows, columns, unit, interleaved, tile, stride, tile_stride0] = layout;
  const auto [count0, count1, tile0, tile1, ahead] = steps;
  const uint64_t run = kRun ? kRun : columns * unit;
  for (uint64_t x = 0; x < count0; ++x)
    for (uint64_t p = 0; p < rows; ++p)
      for (uint64_t y = 0; y < count1; ++y)
        std::memcpy(matrix + (x * rows + p) * stride + y * run, tiles + x * tile0 + y * tile1 + p * run, run);
}
template <bool kStream>
void unpack_lines(const Layout& layout, const Steps& steps, const uint8_t* tiles, uint8_t* matrix) {
  const uint8_t* ahead = tiles + steps.ahead;
  for (uint64_t x = 0; x < steps.count0; ++x)
    for (uint64_t p = 0; p < layout.rows; ++p)
      for (uint64_t y = 0; y < steps.count1; ++y) {
        if constexpr (kStream) {
          hwy::Prefetch(ahead);
          ahead += steps.ahead ? kLine : 0;
        }
        copy_line<kStream>(tiles + x * steps.tile0 + y * steps.tile1 + p * kLine,
                           matrix + (x * layout.rows + p) * layout.stride + y * kLine);
      }
}
void unpack_units(const Layout& layout, const Steps& steps, const uint8_t* tiles, uint8_t* matrix) {
  const bool dense = steps.tile1 == layout.tile;
  const uint64_t columns = dense ? layout.columns * steps.count1 : layout.columns;
  for (uint64_t x = 0; x < steps.count0; ++x)
    for (uint64_t y = 0; y < (dense ? 1 : steps.count1); ++y)
      transpose<false>(tiles + x * steps.tile0 + y * steps.tile1, layout.rows * 4,
                       matrix + x * layout.rows * layout.stride + y * columns * 4, layout.stride, columns,
                       layout.rows);
}

template <typename T>
void unpack(const uint8_t* tiles, uint8_t* matrix, const Tiling& tiling) {
  const Layout layout = layout_of<T>(tiling);
  // The plain loops handle overlapping rows and operands, because their order defines the result.
  if (tiling.stride1 != 1 || (tiling.stride0 < tiling.size1 && tiling.size0 > 1) ||
      (layout.interleaved && layout.unit != 4) || tiling.overlaps(matrix, tiles, sizeof(T)))
    return scalar::unpack<T>(tiles, matrix, tiling);
  const uint64_t run = layout.columns * layout.unit;
  const bool lines = !layout.interleaved && run == kLine;
  const bool stream = lines && tiling.size0 * tiling.size1 * sizeof(T) >= kStreamed &&
                      reinterpret_cast<uintptr_t>(matrix) % kLine == 0 && layout.stride % kLine == 0;
  const UnpackTiles function = layout.interleaved ? unpack_units
                               : stream           ? unpack_lines<true>
                               : lines            ? unpack_lines<false>
                               : run == 32        ? unpack_runs<32>
                                                  : unpack_runs<0>;
  const uint64_t tile_step = tiling.outer_transposed ? layout.tile_stride0 : layout.tile;
  const uint64_t x_step = tiling.outer_transposed ? layout.tile : layout.tile_stride0;
  const uint64_t full0 = tiling.size0 / tiling.extent0();
  const uint64_t full1 = tiling.size1 / tiling.extent1();
  const uint64_t width = tiling.extent1() * sizeof(T);
  const bool whole = stream && tile_step == layout.tile && full1 * layout.tile <= kUnpackedRow;
  const uint64_t panels = whole ? full1 : kPanels;
  for (uint64_t x = 0; x < full0; ++x)
    for (uint64_t y = 0; y < full1; y += panels)
      function(layout,
               {1, std::min(panels, full1 - y), x_step, tile_step, whole && x + 1 < full0 ? x_step : 0},
               tiles + x * x_step + y * tile_step, matrix + x * layout.rows * layout.stride + y * width);
  if (stream) hwy::FlushStream();
  for (uint64_t x = 0; x * tiling.extent0() < tiling.size0; ++x)
    for (uint64_t y = x < full0 ? full1 : 0; y * tiling.extent1() < tiling.size1; ++y)
      scalar::unpack_tile<T>(tiles, matrix, tiling, x, y);
}

}  // namespace

void add_tiles(Kernels& kernels) {
  kernels.pack = {pack<uint8_t>, pack<uint16_t>, pack<uint32_t>};
  kernels.unpack = {unpack<uint8_t>, unpack<uint16_t>, unpack<uint32_t>};
}

}  // namespace halyard::local::vmvx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#else
VMVX_NO_KERNELS(add_tiles, (Kernels&))
#endif

#if HWY_ONCE
namespace halyard::local::vmvx {

void add_tiles_simd(int64_t target, Kernels& kernels) { VMVX_FUNCTION_FOR(target, add_tiles)(kernels); }

}  // namespace halyard::local::vmvx
#endif
