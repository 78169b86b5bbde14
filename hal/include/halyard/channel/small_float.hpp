// Floats of 16 and 8 bits, converted from and to f32 with integer operations. Rounding is to nearest, ties to
// even; overflow gives infinity, or NaN in formats without infinity.
#ifndef HALYARD_CHANNEL_SMALL_FLOAT_HPP_
#define HALYARD_CHANNEL_SMALL_FLOAT_HPP_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace halyard::channel {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint32_t largest_finite;  // codes without the sign
  uint32_t overflow;        // code of infinity; of NaN in formats without infinity
  uint32_t nan;
  bool has_negative_zero;  // without it, NaN has no sign either, and has the code of -0
};

inline constexpr FloatFormat kFloat16 = {5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, true};
inline constexpr FloatFormat kBfloat16 = {8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, true};
inline constexpr FloatFormat kFloat8E5M2 = {5, 2, 15, 0x7B, 0x7C, 0x7E, true};
inline constexpr FloatFormat kFloat8E4M3FN = {4, 3, 7, 0x7E, 0x7F, 0x7F, true};
inline constexpr FloatFormat kFloat8E5M2FNUZ = {5, 2, 16, 0x7F, 0x80, 0x80, false};
inline constexpr FloatFormat kFloat8E4M3FNUZ = {4, 3, 8, 0x7F, 0x80, 0x80, false};

template <FloatFormat format>
constexpr float widen(uint32_t code) {
  constexpr int kWidth = format.exponent_bits + format.mantissa_bits;
  constexpr uint32_t kNan = 0x7FC00000;
  if (!format.has_negative_zero && code == format.nan) return std::bit_cast<float>(kNan);
  const uint32_t sign = code >> kWidth << 31;
  const uint32_t magnitude = code & ((1u << kWidth) - 1);
  if (magnitude > format.largest_finite) {
    const bool is_infinite = magnitude == format.overflow && format.overflow != format.nan;
    return std::bit_cast<float>(sign | (is_infinite ? 0x7F800000 : kNan));
  }
  const uint32_t exponent = magnitude >> format.mantissa_bits;
  const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  float value = 0;
  if (exponent == 0) {
    // Two factors, each a normal f32.
    constexpr int kUnit = 1 - format.bias - format.mantissa_bits;
    constexpr float kFirst = std::bit_cast<float>(static_cast<uint32_t>(kUnit / 2 + 127) << 23);
    constexpr float kSecond = std::bit_cast<float>(static_cast<uint32_t>(kUnit - kUnit / 2 + 127) << 23);
    value = static_cast<float>(mantissa) * kFirst * kSecond;
  } else {
    value = std::bit_cast<float>((exponent + static_cast<uint32_t>(127 - format.bias)) << 23 |
                                 mantissa << (23 - format.mantissa_bits));
  }
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

template <FloatFormat format>
constexpr uint32_t round_to(float value) {
  constexpr int kWidth = format.exponent_bits + format.mantissa_bits;
  constexpr int kSmallest = 1 - format.bias;  // the exponent of the smallest normal value
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 31 << kWidth;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return format.nan;
  uint32_t code = format.largest_finite + 1;
  if (magnitude < 0x7F800000) {
    const int field = std::max(static_cast<int>(magnitude >> 23), 1);
    const uint32_t significand = (magnitude & 0x7FFFFF) | (magnitude >> 23 ? 0x800000 : 0);
    const int unit = std::max(field - 127, kSmallest);
    // How many bits of the significand are finer than the format's; at 25 and more nothing is left.
    const int drop = std::min(unit - format.mantissa_bits - (field - 150), 25);
    const uint32_t rest = significand & ((1u << drop) - 1);
    const uint32_t half = 1u << (drop - 1);
    uint32_t steps = significand >> drop;
    if (rest > half || (rest == half && steps % 2 != 0)) ++steps;
    // The leading one of normal values increments the exponent field, and a carry increments it once more.
    if (unit - kSmallest < 1 << format.exponent_bits)
      code = (static_cast<uint32_t>(unit - kSmallest) << format.mantissa_bits) + steps;
  }
  if (code > format.largest_finite)
    return format.has_negative_zero ? format.overflow | sign : format.overflow;
  if (code == 0 && !format.has_negative_zero) return 0;
  return code | sign;
}

}  // namespace halyard::channel

#endif  // HALYARD_CHANNEL_SMALL_FLOAT_HPP_
