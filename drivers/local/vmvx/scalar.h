// The element-wise operations on one element. They define the results of all kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels.h"

namespace halyard::local::vmvx::scalar {

template <Binary kOperation>
inline constexpr bool kDivides = kOperation == Binary::divs_i32 || kOperation == Binary::divu_i32;

// Operates on bits; a divisor must not be 0.
template <Binary kOperation>
uint32_t apply(uint32_t lhs, uint32_t rhs) {
  using enum Binary;
  if constexpr (kOperation <= div_f32) {
    const auto a = std::bit_cast<float>(lhs);
    const auto b = std::bit_cast<float>(rhs);
    if constexpr (kOperation == add_f32) return std::bit_cast<uint32_t>(a + b);
    if constexpr (kOperation == sub_f32) return std::bit_cast<uint32_t>(a - b);
    if constexpr (kOperation == mul_f32) return std::bit_cast<uint32_t>(a * b);
    if constexpr (kOperation == div_f32) return std::bit_cast<uint32_t>(a / b);
  } else {
    const auto a = static_cast<int32_t>(lhs);
    const auto b = static_cast<int32_t>(rhs);
    if constexpr (kOperation == add_i32) return lhs + rhs;
    if constexpr (kOperation == sub_i32) return lhs - rhs;
    if constexpr (kOperation == mul_i32) return lhs * rhs;
    // INT_MIN / -1 wraps.
    if constexpr (kOperation == divs_i32) return b == -1 ? 0 - lhs : static_cast<uint32_t>(a / b);
    if constexpr (kOperation == divu_i32) return lhs / rhs;
    if constexpr (kOperation == and_i32) return lhs & rhs;
    if constexpr (kOperation == or_i32) return lhs | rhs;
    if constexpr (kOperation == xor_i32) return lhs ^ rhs;
    if constexpr (kOperation == shl_i32) return lhs << (rhs & 31);
    if constexpr (kOperation == shrs_i32) return static_cast<uint32_t>(a >> (rhs & 31));
    if constexpr (kOperation == shru_i32) return lhs >> (rhs & 31);
  }
}

// Flushes denormal numbers like arithmetic does (flush_denormals.h), for library functions that inspect bits.
inline float flushed(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

template <Unary kOperation>
uint32_t apply(uint32_t bits) {
  using enum Unary;
  const float x = flushed(std::bit_cast<float>(bits));
  if constexpr (kOperation == abs_f32) return bits & 0x7FFFFFFF;
  if constexpr (kOperation == neg_f32) return bits ^ 0x80000000;
  if constexpr (kOperation == ctlz_i32) return static_cast<uint32_t>(std::countl_zero(bits));
  if constexpr (kOperation == ceil_f32) return std::bit_cast<uint32_t>(std::ceil(x));
  if constexpr (kOperation == floor_f32) return std::bit_cast<uint32_t>(std::floor(x));
  if constexpr (kOperation == exp_f32) return std::bit_cast<uint32_t>(std::exp(x));
  if constexpr (kOperation == log_f32) return std::bit_cast<uint32_t>(std::log(x));
  if constexpr (kOperation == rsqrt_f32) return std::bit_cast<uint32_t>(1.0f / std::sqrt(x));
}

// ---- The loops. Their order, row by row, defines the results for all strides and overlaps.

template <Binary kOperation>
bool binary(const Input& lhs, const Input& rhs, const Output& out, const Shape& shape) {
  for (uint64_t i = 0; i < shape.size0; ++i) {
    for (uint64_t j = 0; j < shape.size1; ++j) {
      const auto a = load<uint32_t>(lhs.data + (i * lhs.stride0 + j * lhs.stride1) * 4);
      const auto b = load<uint32_t>(rhs.data + (i * rhs.stride0 + j * rhs.stride1) * 4);
      if (kDivides<kOperation> && b == 0) return false;
      store(out.data + (i * out.stride0 + j * out.stride1) * 4, apply<kOperation>(a, b));
    }
  }
  return true;
}

template <typename T, typename Function>
void map(const Input& in, const Output& out, const Shape& shape, Function&& function) {
  for (uint64_t i = 0; i < shape.size0; ++i)
    for (uint64_t j = 0; j < shape.size1; ++j)
      store(out.data + (i * out.stride0 + j * out.stride1) * sizeof(T),
            function(load<T>(in.data + (i * in.stride0 + j * in.stride1) * sizeof(T))));
}

template <Unary kOperation>
void unary(const Input& in, const Output& out, const Shape& shape) {
  map<uint32_t>(in, out, shape, apply<kOperation>);
}

template <typename T>
void copy(const Input& in, const Output& out, const Shape& shape) {
  map<T>(in, out, shape, [](T value) { return value; });
}

// The tile at tile row x and tile column y.
template <typename T>
void pack_tile(const uint8_t* matrix, uint8_t* tiles, const Tiling& tiling, uint64_t padding, uint64_t x,
               uint64_t y) {
  uint8_t* const tile = tiles + tiling.tile_at(x, y) * sizeof(T);
  for (uint64_t p = 0; p < tiling.extent0(); ++p) {
    for (uint64_t q = 0; q < tiling.extent1(); ++q) {
      const uint64_t row = x * tiling.extent0() + p;
      const uint64_t column = y * tiling.extent1() + q;
      const uint64_t to = tiling.inner_transposed ? q * tiling.t1 + p : p * tiling.t1 + q;
      const bool inside = row < tiling.size0 && column < tiling.size1;
      store(tile + to * sizeof(T),
            inside ? load<T>(matrix + (row * tiling.stride0 + column * tiling.stride1) * sizeof(T))
                   : static_cast<T>(padding));
    }
  }
}

template <typename T>
void pack(const uint8_t* matrix, uint8_t* tiles, const Tiling& tiling, uint64_t padding) {
  for (uint64_t x = 0; x < tiling.grid0(); ++x)
    for (uint64_t y = 0; y < tiling.grid1(); ++y) pack_tile<T>(matrix, tiles, tiling, padding, x, y);
}

// Unpacks the part of a tile that the matrix covers.
template <typename T>
void unpack_tile(const uint8_t* tiles, uint8_t* matrix, const Tiling& tiling, uint64_t x, uint64_t y) {
  const uint8_t* const tile = tiles + tiling.tile_at(x, y) * sizeof(T);
  const uint64_t row = x * tiling.extent0();
  const uint64_t column = y * tiling.extent1();
  const uint64_t rows = std::min(tiling.extent0(), tiling.size0 - row);
  const uint64_t columns = std::min(tiling.extent1(), tiling.size1 - column);
  for (uint64_t p = 0; p < rows; ++p) {
    for (uint64_t q = 0; q < columns; ++q) {
      const uint64_t from = tiling.inner_transposed ? q * tiling.t1 + p : p * tiling.t1 + q;
      store(matrix + ((row + p) * tiling.stride0 + (column + q) * tiling.stride1) * sizeof(T),
            load<T>(tile + from * sizeof(T)));
    }
  }
}

template <typename T>
void unpack(const uint8_t* tiles, uint8_t* matrix, const Tiling& tiling) {
  for (uint64_t x = 0; x * tiling.extent0() < tiling.size0; ++x)
    for (uint64_t y = 0; y * tiling.extent1() < tiling.size1; ++y)
      unpack_tile<T>(tiles, matrix, tiling, x, y);
}

// One kernel for each type; each supports all tile sizes.
extern const std::array<Mmt4dKernel, kMmt4dTypeCount> kMmt4d;

}  // namespace halyard::local::vmvx::scalar
