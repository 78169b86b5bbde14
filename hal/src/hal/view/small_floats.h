// Floats of 16 and 8 bits: one description of each format, one encoder and one decoder for all of them.
// Rounding is to nearest, ties to even; overflow gives infinity, or NaN in formats without infinity.
#pragma once

#include <cstdint>

namespace halyard::hal {

struct SmallFloat {
  uint8_t exponent_bits;
  uint8_t mantissa_bits;
  int16_t bias;             // a normal value is 1.mantissa * 2^(exponent - bias)
  uint16_t largest_finite;  // codes without the sign
  uint16_t infinity;        // 0: the format has none
  uint16_t nan;             // the code that the encoder emits
  bool signed_values;       // the top bit is a sign
  bool signed_nan;          // and NaN may have it; without: there is no negative zero either
};

inline constexpr SmallFloat kF16 = {5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, true, true};
inline constexpr SmallFloat kBf16 = {8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, true, true};
inline constexpr SmallFloat kF8E5M2 = {5, 2, 15, 0x7B, 0x7C, 0x7E, true, true};
inline constexpr SmallFloat kF8E4M3FN = {4, 3, 7, 0x7E, 0, 0x7F, true, true};
inline constexpr SmallFloat kF8E5M2FNUZ = {5, 2, 16, 0x7F, 0, 0x80, true, false};
inline constexpr SmallFloat kF8E4M3FNUZ = {4, 3, 8, 0x7F, 0, 0x80, true, false};
// Powers of two from 2^-127 to 2^127: no sign, no zero. Zero encodes as the smallest value, negative values
// as NaN.
inline constexpr SmallFloat kF8E8M0FNU = {8, 0, 127, 0xFE, 0, 0xFF, false, false};

uint16_t encode(const SmallFloat& format, double value);
float decode(const SmallFloat& format, uint16_t code);  // exact

}  // namespace halyard::hal
