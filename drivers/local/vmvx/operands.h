// What kernels are given: operands that have been checked. Strides and sizes count elements; no operand needs
// an alignment.
#pragma once

#include <cstdint>
#include <cstring>

namespace halyard::local::vmvx {

// Element (i, j) is at data + (i * stride0 + j * stride1) * the size of an element.
struct Input {
  const uint8_t* data;
  uint64_t stride0, stride1;
};
struct Output {
  uint8_t* data;
  uint64_t stride0, stride1;
};
struct Shape {
  uint64_t size0, size1;  // neither is 0
};

template <typename T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
template <typename T>
void store(uint8_t* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

// A matrix and its tiles: tiles[o0][o1][t0][t1], of which row `o0` begins at o0 * tile_stride0. The matrix
// has tiles of `extent0` rows and `extent1` columns; tile row x, tile column y is at [x][y], or at [y][x]
// where the outer dimensions are transposed. Within a tile element (p, q) is at [p][q], or at [q][p] where
// the inner ones are; the extents are (t0, t1) or (t1, t0).
struct Tiling {
  uint64_t o0, o1, t0, t1;  // none is 0
  uint64_t tile_stride0;
  uint64_t stride0, stride1;  // of the matrix
  uint64_t size0, size1;      // of the matrix; may be 0
  bool outer_transposed, inner_transposed;

  uint64_t extent0() const { return inner_transposed ? t1 : t0; }
  uint64_t extent1() const { return inner_transposed ? t0 : t1; }
  uint64_t grid0() const { return outer_transposed ? o1 : o0; }  // tile rows
  uint64_t grid1() const { return outer_transposed ? o0 : o1; }
  uint64_t tile_at(uint64_t x, uint64_t y) const {  // elements from the first tile
    return outer_transposed ? y * tile_stride0 + x * t0 * t1 : x * tile_stride0 + y * t0 * t1;
  }
};

// out[i][j] (+)= sum over k of lhs[i][k] * transposed rhs[j][k], tile by tile: lhs[m][k][m0][k0],
// rhs[n][k][n0][k0], out[m][n][m0][n0]. The outermost dimension of each has a stride, the others are dense.
// 4-bit elements: two in a byte, the first in its low half; strides are even.
struct Mmt4d {
  const uint8_t* lhs;
  const uint8_t* rhs;
  uint8_t* out;
  uint64_t lhs_stride, rhs_stride, out_stride;
  uint64_t m, n, k;     // tiles; m and n are not 0
  uint32_t m0, n0, k0;  // m0 and n0 are not 0; k0 is 0 only where k is
  bool accumulate;
  bool skip_rounding;  // 16-bit results may be rounded once, at the end
};

}  // namespace halyard::local::vmvx
