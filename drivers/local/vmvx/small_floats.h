// 16-bit floats as bits: half precision (f16) and the upper half of single precision (bf16). Rounded to
// nearest, ties to even; values too small for a normal f16 become denormal.
#pragma once

#include <bit>
#include <cstdint>

namespace halyard::local::vmvx {

inline float f16_to_f32(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t fraction = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Denormal: fraction * 2^-24, which is normal in single precision.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // rounds to 2^16 or more
  const uint32_t exponent = magnitude >> 23;
  if (exponent >= 113) {
    // The carry of rounding correctly propagates into the exponent.
    const uint32_t rounded = magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | rounded >> 13);
  }
  if (exponent < 102) return static_cast<uint16_t>(sign);  // less than half of the smallest f16
  const uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t shift = 126 - exponent;  // 14 to 24
  const uint32_t rest = fraction & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  const uint32_t quotient = fraction >> shift;
  const bool up = rest > half || (rest == half && (quotient & 1) != 0);
  return static_cast<uint16_t>(sign | (quotient + (up ? 1 : 0)));
}

inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace halyard::local::vmvx
