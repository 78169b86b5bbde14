// One encoder and one decoder for all small formats.
#include "hal/view/small_floats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halyard::hal {

namespace {

int width(const SmallFloat& format) { return format.exponent_bits + format.mantissa_bits; }

uint16_t sign_bit(const SmallFloat& format) {
  return static_cast<uint16_t>(format.signed_values ? 1u << width(format) : 0u);
}

uint16_t too_large(const SmallFloat& format) { return format.infinity != 0 ? format.infinity : format.nan; }

// Encodes an exponent-only format: ties are between neighbouring exponents.
uint16_t encode_power(const SmallFloat& format, double value) {
  if (!(value >= 0)) return format.nan;
  if (std::isinf(value)) return format.nan;
  const double smallest = std::ldexp(1.0, -format.bias);
  if (value <= smallest) return 0;
  int exponent = 0;
  const double fraction =
      std::frexp(value, &exponent);  // in [0.5, 1): value is 2 * fraction * 2^(exponent - 1)
  int code = exponent - 1 + format.bias;
  if (fraction > 0.75 || (fraction == 0.75 && code % 2 != 0)) ++code;
  return code > format.largest_finite ? format.nan : static_cast<uint16_t>(code);
}

double round_to_even(double value) {
  const double low = std::floor(value);
  const double rest = value - low;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(low, 2.0) != 0)) return low + 1;
  return low;
}

}  // namespace

uint16_t encode(const SmallFloat& format, double value) {
  if (!format.signed_values) return encode_power(format, value);
  const uint16_t sign = std::signbit(value) ? sign_bit(format) : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(format.signed_nan ? format.nan | sign : format.nan);
  const double magnitude = std::fabs(value);
  uint32_t code = 0;
  if (std::isinf(magnitude)) {
    code = format.largest_finite + 1u;
  } else if (magnitude != 0) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int smallest = 1 - format.bias;  // exponent of normal values; below it the spacing stays the same
    const int unit = std::max(exponent - 1, smallest);
    // Shortcut for values far above the range, which the steps below would also map to the overflow code.
    if (unit > smallest + (1 << format.exponent_bits)) {
      code = format.largest_finite + 1u;
    } else {
      const double steps = round_to_even(std::ldexp(magnitude, format.mantissa_bits - unit));
      // The implicit one in `steps` increments the exponent field; a carry out of the mantissa increments it
      // once more.
      code = (static_cast<uint32_t>(unit - smallest) << format.mantissa_bits) + static_cast<uint32_t>(steps);
    }
  }
  if (code > format.largest_finite) {
    const uint16_t large = too_large(format);
    const bool keeps_sign = format.infinity != 0 || format.signed_nan;
    return static_cast<uint16_t>(keeps_sign ? large | sign : large);
  }
  if (code == 0 && !format.signed_nan) return 0;
  return static_cast<uint16_t>(code | sign);
}

float decode(const SmallFloat& format, uint16_t code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (!format.signed_values) return code == format.nan ? kNan : std::ldexp(1.0f, code - format.bias);
  if (!format.signed_nan && code == format.nan) return kNan;
  const bool negative = (code & sign_bit(format)) != 0;
  const auto magnitude = static_cast<uint16_t>(code & (sign_bit(format) - 1u));
  float value = 0;
  if (magnitude > format.largest_finite) {
    value =
        format.infinity != 0 && magnitude == format.infinity ? std::numeric_limits<float>::infinity() : kNan;
  } else {
    const int exponent = magnitude >> format.mantissa_bits;
    const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
    const int whole = exponent == 0 ? mantissa : mantissa | 1 << format.mantissa_bits;
    value = std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - format.bias - format.mantissa_bits);
  }
  return negative ? std::copysign(value, -1.0f) : value;
}

}  // namespace halyard::hal
