// Operands of kernels, already checked. Strides and sizes are in elements; operands need not be aligned.
#pragma once

#include <cstdint>
#include <cstring>

namespace halyard::local::vmvx {

// Element (i, j) is at data + (i * stride0 + j * stride1) * size of an element.
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

// A matrix and its tiles: tiles[o0][o1][t0][t1]; row `o0` starts at o0 * tile_stride0. A tile holds `extent0`
// rows and `extent1` columns of the matrix. The tile at tile row x and tile column y is at [x][y], or at
// [y][x] if the outer dimensions are transposed. Element (p, q) of a tile is at [p][q], or at [q][p] if the
// inner dimensions are transposed; the extents are then (t1, t0) instead of (t0, t1).
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
  uint64_t tile_at(uint64_t x, uint64_t y) const {  // in elements from the first tile
    return outer_transposed ? y * tile_stride0 + x * t0 * t1 : x * tile_stride0 + y * t0 * t1;
  }
  // Whether some tile lies within the bytes of the matrix.
  bool overlaps(const uint8_t* matrix, const uint8_t* tiles, uint64_t element_size) const {
    if (size0 == 0 || size1 == 0) return false;
    const uint8_t* const matrix_end =
        matrix + ((size0 - 1) * stride0 + (size1 - 1) * stride1 + 1) * element_size;
    const uint8_t* const tiles_end = tiles + ((o0 - 1) * tile_stride0 + o1 * t0 * t1) * element_size;
    return matrix < tiles_end && tiles < matrix_end;
  }
};

// out[i][j] (+)= sum over k of lhs[i][k] * transposed rhs[j][k], tile by tile: lhs[m][k][m0][k0],
// rhs[n][k][n0][k0], out[m][n][m0][n0]. The outermost dimension of each has a stride, the others are dense.
// 4-bit elements are packed in pairs, the first one in the low half of the byte; the strides of these
// operands are even.
struct Mmt4d {
  const uint8_t* lhs;
  const uint8_t* rhs;
  uint8_t* out;
  uint64_t lhs_stride, rhs_stride, out_stride;
  uint64_t m, n, k;     // tiles; m and n are not 0
  uint32_t m0, n0, k0;  // m0 and n0 are not 0; k0 is 0 only if k is 0
  bool accumulate;
  bool skip_rounding;  // 16-bit results may be rounded only once, at the end
};

}  // namespace halyard::local::vmvx
