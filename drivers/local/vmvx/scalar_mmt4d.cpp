// Matrix products in plain loops, for all types and tile sizes.
#include "scalar.h"
#include "small_floats.h"

namespace halyard::local::vmvx::scalar {

namespace {

// Loads elements of a type and accumulates results. Indices are in elements.
template <typename T>
struct Plain {
  using Value = T;
  static constexpr uint64_t bits = sizeof(T) * 8;
  static T get(const uint8_t* data, uint64_t index) { return load<T>(data + index * sizeof(T)); }
  static void put(uint8_t* data, uint64_t index, T value) { store(data + index * sizeof(T), value); }
  static T round(T value) { return value; }
};
struct F16 {
  using Value = float;
  static constexpr uint64_t bits = 16;
  static float get(const uint8_t* data, uint64_t index) {
    return f16_to_f32(load<uint16_t>(data + index * 2));
  }
  static void put(uint8_t* data, uint64_t index, float value) { store(data + index * 2, f32_to_f16(value)); }
  static float round(float value) { return f16_to_f32(f32_to_f16(value)); }
};
struct Bf16 {
  using Value = float;
  static constexpr uint64_t bits = 16;
  static float get(const uint8_t* data, uint64_t index) {
    return bf16_to_f32(load<uint16_t>(data + index * 2));
  }
  static void put(uint8_t* data, uint64_t index, float value) { store(data + index * 2, f32_to_bf16(value)); }
  static float round(float value) { return bf16_to_f32(f32_to_bf16(value)); }
};
struct U4 {
  static constexpr uint64_t bits = 4;
  static int32_t get(const uint8_t* data, uint64_t index) { return data[index / 2] >> index % 2 * 4 & 15; }
};
struct S4 {
  static constexpr uint64_t bits = 4;
  static int32_t get(const uint8_t* data, uint64_t index) { return (U4::get(data, index) ^ 8) - 8; }
};
using F32 = Plain<float>;
using S8 = Plain<int8_t>;
using S16 = Plain<int16_t>;
using S32 = Plain<int32_t>;

float add_product(float sum, float a, float b) { return sum + a * b; }
int32_t add_product(int32_t sum, int32_t a, int32_t b) {  // modulo 2^32
  return static_cast<int32_t>(static_cast<uint32_t>(sum) +
                              static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

template <typename Lhs, typename Rhs, typename Out>
void mmt4d(const Mmt4d& operands) {
  const auto& [lhs, rhs, out, lhs_stride, rhs_stride, out_stride, m, n, k, m0, n0, k0, accumulate, skip] =
      operands;
  if (accumulate && k == 0) return;
  for (uint64_t i = 0; i < m; ++i) {
    const uint8_t* const lhs_row = lhs + i * lhs_stride * Lhs::bits / 8;
    for (uint64_t j = 0; j < n; ++j) {
      const uint8_t* const rhs_row = rhs + j * rhs_stride * Rhs::bits / 8;
      uint8_t* const tile = out + (i * out_stride + j * m0 * n0) * Out::bits / 8;
      for (uint64_t a = 0; a < m0; ++a) {
        for (uint64_t b = 0; b < n0; ++b) {
          typename Out::Value sum = accumulate ? Out::get(tile, a * n0 + b) : typename Out::Value();
          for (uint64_t step = 0; step < k; ++step) {
            for (uint64_t c = 0; c < k0; ++c) {
              sum = add_product(sum, Lhs::get(lhs_row, (step * m0 + a) * k0 + c),
                                Rhs::get(rhs_row, (step * n0 + b) * k0 + c));
              if (!skip) sum = Out::round(sum);
            }
          }
          Out::put(tile, a * n0 + b, sum);
        }
      }
    }
  }
}

}  // namespace

constinit const std::array<Mmt4dKernel, kMmt4dTypeCount> kMmt4d = {
    mmt4d<F32, F32, F32>,   mmt4d<S8, S8, S32>,      mmt4d<F16, F16, F32>, mmt4d<F16, F16, F16>,
    mmt4d<Bf16, Bf16, F32>, mmt4d<Bf16, Bf16, Bf16>, mmt4d<S16, S16, S32>, mmt4d<S16, U4, S32>,
    mmt4d<S16, S8, S32>,    mmt4d<S8, S4, S32>};

}  // namespace halyard::local::vmvx::scalar
