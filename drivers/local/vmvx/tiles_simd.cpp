// Packing into tiles and back, of matrices whose rows are dense. Within a tile either pieces of rows lie one
// after another ("runs"), or elements of several rows alternate ("interleaved"). A tile of one column, or of
// few whose elements together are as long as a longer element, is interleaved, too. Tiles at the edge, which
// the matrix does not fill, and rarer layouts go the plain way.
#include "simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vmvx/tiles_simd.cpp"
#include <hwy/foreach_target.h>
// After it.
#include <hwy/highway.h>

#include <algorithm>

#include "scalar.h"
#include "simd.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace halyard::local::vmvx::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using U32x4 = hn::FixedTag<uint32_t, 4>;
using U64x2 = hn::FixedTag<uint64_t, 2>;
using U8x16 = hn::FixedTag<uint8_t, 16>;
constexpr U32x4 u32x4;
constexpr U64x2 u64x2;
constexpr U8x16 u8x16;
using V = hn::Vec<U32x4>;

constexpr uint64_t kPanels = 16;  // that are written, or read, side by side

// ---- Tiles as bytes

// Runs: kRows pieces of `run` bytes each. Interleaved: units of `unit` bytes of `rows` rows alternate, for
// `columns` columns of units.
struct Layout {
  uint64_t rows;     // of the matrix in a tile
  uint64_t columns;  // of the matrix in a tile, in units
  uint64_t unit;     // bytes
  bool interleaved;
  uint64_t tile;          // bytes
  uint64_t stride;        // bytes from row to row of the matrix
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

// ---- Moving

HWY_INLINE void copy_bytes(const uint8_t* from, uint8_t* to, uint64_t size) {
  switch (size) {
    case 64:
      std::memcpy(to, from, 64);
      return;
    case 32:
      std::memcpy(to, from, 32);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      std::memcpy(to, from, size);
      return;
  }
}

HWY_INLINE V load4(const uint8_t* at) { return hn::LoadU(u32x4, reinterpret_cast<const uint32_t*>(at)); }
HWY_INLINE void store4(V value, uint8_t* at) { hn::StoreU(value, u32x4, reinterpret_cast<uint32_t*>(at)); }

struct Square {
  V rows[4];
};
HWY_INLINE Square transpose(const Square& in) {
  const auto low01 = hn::BitCast(u64x2, hn::InterleaveLower(u32x4, in.rows[0], in.rows[1]));
  const auto low23 = hn::BitCast(u64x2, hn::InterleaveLower(u32x4, in.rows[2], in.rows[3]));
  const auto high01 = hn::BitCast(u64x2, hn::InterleaveUpper(u32x4, in.rows[0], in.rows[1]));
  const auto high23 = hn::BitCast(u64x2, hn::InterleaveUpper(u32x4, in.rows[2], in.rows[3]));
  return {{hn::BitCast(u32x4, hn::InterleaveLower(u64x2, low01, low23)),
           hn::BitCast(u32x4, hn::InterleaveUpper(u64x2, low01, low23)),
           hn::BitCast(u32x4, hn::InterleaveLower(u64x2, high01, high23)),
           hn::BitCast(u32x4, hn::InterleaveUpper(u64x2, high01, high23))}};
}
// Four by four units, of rows so many bytes apart.
HWY_INLINE void transpose_square(const uint8_t* from, uint64_t from_stride, uint8_t* to, uint64_t to_stride) {
  Square square;
  VMVX_UNROLL
  for (size_t i = 0; i < 4; ++i) square.rows[i] = load4(from + i * from_stride);
  square = transpose(square);
  VMVX_UNROLL
  for (size_t i = 0; i < 4; ++i) store4(square.rows[i], to + i * to_stride);
}

// `rows` x `columns` units of 4 bytes, rows a multiple of 4, columns a multiple of 4: what is at (i, j) goes
// to (j, i). Whole cache lines of rows are read or written at a time.
HWY_INLINE void transpose_units(const uint8_t* from, uint64_t from_stride, uint8_t* to, uint64_t to_stride,
                                uint64_t rows, uint64_t columns) {
  constexpr uint64_t kLine = 16;
  for (uint64_t j = 0; j < columns; j += kLine) {
    const uint64_t end = std::min(j + kLine, columns);
    for (uint64_t i = 0; i < rows; i += 4)
      for (uint64_t column = j; column < end; column += 4)
        transpose_square(from + i * from_stride + column * 4, from_stride, to + column * to_stride + i * 4,
                         to_stride);
  }
}

// Units of 1 byte: four rows alternate, columns a multiple of 16.
HWY_INLINE void interleave4(const uint8_t* from, uint64_t stride, uint8_t* to, uint64_t columns) {
  for (uint64_t j = 0; j < columns; j += 16)
    hn::StoreInterleaved4(hn::LoadU(u8x16, from + j), hn::LoadU(u8x16, from + stride + j),
                          hn::LoadU(u8x16, from + 2 * stride + j), hn::LoadU(u8x16, from + 3 * stride + j),
                          u8x16, to + j * 4);
}
HWY_INLINE void interleave2(const uint8_t* from, uint64_t stride, uint8_t* to, uint64_t columns) {
  for (uint64_t j = 0; j < columns; j += 16)
    hn::StoreInterleaved2(hn::LoadU(u8x16, from + j), hn::LoadU(u8x16, from + stride + j), u8x16, to + j * 2);
}

// ---- Matrix to tiles

// `count` tiles side by side, of one tile row.
using PackTiles = void (*)(const Layout& layout, const uint8_t* matrix, uint8_t* tiles, uint64_t tile_step,
                           uint64_t count);

void pack_runs(const Layout& layout, const uint8_t* matrix, uint8_t* tiles, uint64_t tile_step,
               uint64_t count) {
  const uint64_t run = layout.columns * layout.unit;
  for (uint64_t p = 0; p < layout.rows; ++p)
    for (uint64_t y = 0; y < count; ++y)
      copy_bytes(matrix + p * layout.stride + y * run, tiles + y * tile_step + p * run, run);
}
void pack_units(const Layout& layout, const uint8_t* matrix, uint8_t* tiles, uint64_t tile_step,
                uint64_t count) {
  // Tiles that follow each other are one with more columns.
  const bool dense = tile_step == layout.tile;
  const uint64_t columns = dense ? layout.columns * count : layout.columns;
  for (uint64_t y = 0; y < (dense ? 1 : count); ++y) {
    const uint8_t* const from = matrix + y * layout.columns * 4;
    uint8_t* const to = tiles + y * tile_step;
    const uint64_t most = columns / 4 * 4;
    transpose_units(from, layout.stride, to, layout.rows * 4, layout.rows, most);
    for (uint64_t column = most; column < columns; ++column)
      for (uint64_t p = 0; p < layout.rows; ++p)
        store(to + (column * layout.rows + p) * 4, load<uint32_t>(from + p * layout.stride + column * 4));
  }
}
template <uint64_t kRows>
void pack_bytes(const Layout& layout, const uint8_t* matrix, uint8_t* tiles, uint64_t tile_step,
                uint64_t count) {
  for (uint64_t y = 0; y < count; ++y) {
    const uint8_t* const from = matrix + y * layout.columns;
    if constexpr (kRows == 4) {
      interleave4(from, layout.stride, tiles + y * tile_step, layout.columns);
    } else {
      interleave2(from, layout.stride, tiles + y * tile_step, layout.columns);
    }
  }
}

PackTiles pack_function(const Layout& layout) {
  if (!layout.interleaved) return pack_runs;
  if (layout.unit == 4 && layout.rows % 4 == 0) return pack_units;
  if (layout.unit == 1 && layout.columns % 16 == 0) {
    if (layout.rows == 4) return pack_bytes<4>;
    if (layout.rows == 2) return pack_bytes<2>;
  }
  return nullptr;
}

template <typename T>
void pack(const uint8_t* matrix, uint8_t* tiles, const Tiling& tiling, uint64_t padding) {
  const Layout layout = layout_of<T>(tiling);
  const PackTiles function = pack_function(layout);
  if (!function || tiling.stride1 != 1) return scalar::pack<T>(matrix, tiles, tiling, padding);
  const uint64_t tile_step = tiling.outer_transposed ? layout.tile_stride0 : layout.tile;
  const uint64_t x_step = tiling.outer_transposed ? layout.tile : layout.tile_stride0;
  // Tiles that the matrix fills.
  const uint64_t full0 = tiling.size0 / tiling.extent0();
  const uint64_t full1 = tiling.size1 / tiling.extent1();
  const uint64_t width = tiling.extent1() * sizeof(T);
  for (uint64_t y = 0; y < full1; y += kPanels)
    for (uint64_t x = 0; x < full0; ++x)
      function(layout, matrix + x * layout.rows * layout.stride + y * width,
               tiles + x * x_step + y * tile_step, tile_step, std::min(kPanels, full1 - y));
  for (uint64_t x = 0; x < tiling.grid0(); ++x)
    for (uint64_t y = x < full0 ? full1 : 0; y < tiling.grid1(); ++y)
      scalar::pack_tile<T>(matrix, tiles, tiling, padding, x, y);
}

// ---- Tiles to matrix

using UnpackTiles = void (*)(const Layout& layout, const uint8_t* tiles, uint8_t* matrix, uint64_t tile_step,
                             uint64_t count);

void unpack_runs(const Layout& layout, const uint8_t* tiles, uint8_t* matrix, uint64_t tile_step,
                 uint64_t count) {
  const uint64_t run = layout.columns * layout.unit;
  for (uint64_t p = 0; p < layout.rows; ++p)
    for (uint64_t y = 0; y < count; ++y)
      copy_bytes(tiles + y * tile_step + p * run, matrix + p * layout.stride + y * run, run);
}
void unpack_units(const Layout& layout, const uint8_t* tiles, uint8_t* matrix, uint64_t tile_step,
                  uint64_t count) {
  const bool dense = tile_step == layout.tile;
  const uint64_t columns = dense ? layout.columns * count : layout.columns;
  for (uint64_t y = 0; y < (dense ? 1 : count); ++y) {
    const uint8_t* const from = tiles + y * tile_step;
    uint8_t* const to = matrix + y * layout.columns * 4;
    const uint64_t most = columns / 4 * 4;
    transpose_units(from, layout.rows * 4, to, layout.stride, most, layout.rows);
    for (uint64_t column = most; column < columns; ++column)
      for (uint64_t p = 0; p < layout.rows; ++p)
        store(to + p * layout.stride + column * 4, load<uint32_t>(from + (column * layout.rows + p) * 4));
  }
}

UnpackTiles unpack_function(const Layout& layout) {
  if (!layout.interleaved) return unpack_runs;
  if (layout.unit == 4 && layout.rows % 4 == 0) return unpack_units;
  return nullptr;
}

template <typename T>
void unpack(const uint8_t* tiles, uint8_t* matrix, const Tiling& tiling) {
  const Layout layout = layout_of<T>(tiling);
  const UnpackTiles function = unpack_function(layout);
  // Rows that overlap would depend on the order.
  if (!function || tiling.stride1 != 1 || (tiling.stride0 < tiling.size1 && tiling.size0 > 1))
    return scalar::unpack<T>(tiles, matrix, tiling);
  const uint64_t tile_step = tiling.outer_transposed ? layout.tile_stride0 : layout.tile;
  const uint64_t x_step = tiling.outer_transposed ? layout.tile : layout.tile_stride0;
  const uint64_t full0 = tiling.size0 / tiling.extent0();
  const uint64_t full1 = tiling.size1 / tiling.extent1();
  const uint64_t width = tiling.extent1() * sizeof(T);
  for (uint64_t x = 0; x < full0; ++x)
    for (uint64_t y = 0; y < full1; y += kPanels)
      function(layout, tiles + x * x_step + y * tile_step,
               matrix + x * layout.rows * layout.stride + y * width, tile_step, std::min(kPanels, full1 - y));
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

HWY_EXPORT(add_tiles);
void add_tiles_simd(int64_t target, Kernels& kernels) { VMVX_FUNCTION_FOR(target, add_tiles)(kernels); }

}  // namespace halyard::local::vmvx
#endif
