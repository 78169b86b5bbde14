// Floats of 16 and 8 bits: one description of each format, and the one conversion from and to all of them.
// Rounding is to nearest, ties to even; overflow gives infinity, or NaN in formats without infinity. C++20,
// header only, so that the conversions are inlined in loops of kernels and reductions.
#ifndef HALYARD_SMALL_FLOATS_HPP_
#define HALYARD_SMALL_FLOATS_HPP_

#include <bit>
#include <cstdint>
#include <type_traits>

namespace halyard::small_floats {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;                 // a normal value is 1.mantissa * 2^(exponent - bias)
  uint32_t largest_finite;  // codes without the sign
  uint32_t overflow;        // infinity; NaN in formats without one
  uint32_t nan;
  bool has_negative_zero;  // false: NaN has no sign either, because its code is that of -0
  bool has_sign = true;    // false: there is no zero either; code 0 is the smallest power of two

  constexpr int bits() const { return exponent_bits + mantissa_bits + (has_sign ? 1 : 0); }
  constexpr bool has_infinity() const { return overflow != nan; }
  friend constexpr bool operator==(const Format&, const Format&) = default;
};

inline constexpr Format kF16 = {5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, true};
inline constexpr Format kBf16 = {8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, true};
inline constexpr Format kF8E5M2 = {5, 2, 15, 0x7B, 0x7C, 0x7E, true};
inline constexpr Format kF8E4M3FN = {4, 3, 7, 0x7E, 0x7F, 0x7F, true};
inline constexpr Format kF8E5M2FNUZ = {5, 2, 16, 0x7F, 0x80, 0x80, false};
inline constexpr Format kF8E4M3FNUZ = {4, 3, 8, 0x7F, 0x80, 0x80, false};
// Powers of two from 2^-127 to 2^127. Zero encodes as the smallest value, negative values as NaN.
inline constexpr Format kF8E8M0FNU = {8, 0, 127, 0xFE, 0xFF, 0xFF, false, false};

// What a conversion does with the payload bits of a NaN (all bits except its sign). dropped: the result is
// the NaN of the format. kept: the payload is truncated, and a rounded NaN becomes quiet; only in formats
// with infinity.
enum class NanBits { dropped, kept };

// The value of a code; exact.
template <Format format, NanBits nan_bits = NanBits::dropped>
constexpr float widen(uint32_t code) {
  static_assert(nan_bits == NanBits::dropped || format.has_infinity());
  constexpr int kWidth = format.exponent_bits + format.mantissa_bits;
  constexpr int kShift = 23 - format.mantissa_bits;
  constexpr uint32_t kInfinity = 0x7F800000;
  constexpr uint32_t kNan = 0x7FC00000;
  constexpr bool kIsTopOfF32 = format.bias == 127 && format.has_sign;  // bf16 is the upper half of an f32
  if constexpr (kIsTopOfF32 && nan_bits == NanBits::kept) return std::bit_cast<float>(code << kShift);
  if constexpr (!format.has_sign) {
    if (code == format.nan) return std::bit_cast<float>(kNan);
    return std::bit_cast<float>(code == 0 ? 0x00400000 : code << kShift);
  } else {
    if (!format.has_negative_zero && code == format.nan) return std::bit_cast<float>(kNan);
    const uint32_t sign = code >> kWidth << 31;
    const uint32_t magnitude = code & ((1u << kWidth) - 1);
    const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
    if (magnitude > format.largest_finite) {
      if constexpr (nan_bits == NanBits::kept)
        return std::bit_cast<float>(sign | kInfinity | mantissa << kShift);
      return std::bit_cast<float>(sign |
                                  (format.has_infinity() && magnitude == format.overflow ? kInfinity : kNan));
    }
    constexpr auto kRebias = static_cast<uint32_t>(127 - format.bias) << 23;
    if (kIsTopOfF32 || magnitude >> format.mantissa_bits != 0)
      return std::bit_cast<float>(sign | ((magnitude << kShift) + kRebias));
    // Denormal in this format, but normal as f32.
    constexpr auto kUnit = static_cast<uint32_t>(127 + 1 - format.bias - format.mantissa_bits) << 23;
    const float value = static_cast<float>(mantissa) * std::bit_cast<float>(kIsTopOfF32 ? 0 : kUnit);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
}

// The code of the nearest value. `Wide` is float or double; a double is rounded once.
template <Format format, NanBits nan_bits = NanBits::dropped, typename Wide>
constexpr uint32_t narrow(Wide value) {
  constexpr bool kIsFloat = std::is_same_v<Wide, float>;
  static_assert(kIsFloat || std::is_same_v<Wide, double>);
  static_assert(nan_bits == NanBits::dropped || format.has_infinity());
  using Bits = std::conditional_t<kIsFloat, uint32_t, uint64_t>;
  constexpr int kMantissa = kIsFloat ? 23 : 52;
  constexpr int kBias = kIsFloat ? 127 : 1023;
  constexpr int kWidth = format.exponent_bits + format.mantissa_bits;
  constexpr int kDrop = kMantissa - format.mantissa_bits;
  constexpr Bits kOne = 1;
  constexpr Bits kInfinity = (~Bits{0} >> (kMantissa + 1)) << kMantissa;
  // A carry from rounding propagates into the exponent, which is correct.
  constexpr auto rounded = [](Bits bits) {
    return (bits + (kOne << (kDrop - 1)) - 1 + (bits >> kDrop & 1)) >> kDrop;
  };
  if constexpr (!format.has_sign && kIsFloat) {
    return narrow<format>(static_cast<double>(value));  // a double has all values as normal ones
  } else {
    const auto bits = std::bit_cast<Bits>(value);
    const Bits magnitude = bits & (~Bits{0} >> 1);
    const auto sign =
        format.has_sign ? static_cast<uint32_t>((bits ^ magnitude) >> (8 * sizeof bits - 1 - kWidth)) : 0;
    if (magnitude > kInfinity) [[unlikely]] {
      if constexpr (nan_bits == NanBits::kept)
        return sign | format.nan | static_cast<uint32_t>((magnitude & ~kInfinity) >> kDrop);
      return format.has_negative_zero ? format.nan | sign : format.nan;
    }
    if constexpr (kBias == format.bias) {
      // The format is the upper half of an f32: denormals, infinity and the sign need no conversion.
      static_assert(format == kBf16);
      return static_cast<uint32_t>(rounded(bits));
    } else {
      if (!format.has_sign && bits != magnitude && magnitude != 0) return format.nan;
      // The exponent of the smallest normal value.
      constexpr int kLeast = kBias - format.bias + (format.has_sign ? 1 : 0);
      Bits code = 0;
      if (magnitude >= static_cast<Bits>(kLeast) << kMantissa) {
        code = rounded(magnitude - (static_cast<Bits>(kBias - format.bias) << kMantissa));
        if (code > format.largest_finite)
          return format.has_negative_zero ? format.overflow | sign : format.overflow;
      } else if (format.has_sign) {
        const int drop = kDrop + kLeast - static_cast<int>(magnitude >> kMantissa);
        if (drop <= kMantissa + 1) {  // otherwise the value is less than half of the smallest one
          const Bits significand = (magnitude & ((kOne << kMantissa) - 1)) | kOne << kMantissa;
          const Bits rest = significand & ((kOne << drop) - 1);
          const Bits half = kOne << (drop - 1);
          code = significand >> drop;
          if (rest > half || (rest == half && code % 2 != 0)) ++code;
        }
      }
      if (code == 0 && !format.has_negative_zero) return 0;
      return static_cast<uint32_t>(code) | sign;
    }
  }
}

}  // namespace halyard::small_floats

#endif  // HALYARD_SMALL_FLOATS_HPP_
