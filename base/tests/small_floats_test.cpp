// Floats of 16 and 8 bits: every code of every format against its definition, and rounding at every tie.
#include "halyard/small_floats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace halyard::small_floats {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A format, and its functions, which take it as a template argument.
struct Case {
  const char* name;
  Format format;
  float (*widen)(uint32_t code);
  uint32_t (*narrow)(double value);
  uint32_t (*narrow_float)(float value);
};
template <Format format>
constexpr Case case_of(const char* name) {
  return {name, format, widen<format>, narrow<format, NanBits::dropped, double>,
          narrow<format, NanBits::dropped, float>};
}
const Case kCases[] = {case_of<kF16>("f16"),
                       case_of<kBf16>("bf16"),
                       case_of<kF8E5M2>("f8E5M2"),
                       case_of<kF8E4M3FN>("f8E4M3FN"),
                       case_of<kF8E5M2FNUZ>("f8E5M2FNUZ"),
                       case_of<kF8E4M3FNUZ>("f8E4M3FNUZ"),
                       case_of<kF8E8M0FNU>("f8E8M0FNU")};

uint32_t sign_of(const Format& format) { return format.has_sign ? 1u << (format.bits() - 1) : 0; }

// The value of a code, as formats are defined: in double, which has all of them.
double defined(const Format& format, uint32_t code) {
  if (!format.has_sign)
    return code == format.nan ? kNan : std::ldexp(1.0, static_cast<int>(code) - format.bias);
  if (!format.has_negative_zero && code == format.nan) return kNan;
  const uint32_t magnitude = code & (sign_of(format) - 1);
  const double sign = code & sign_of(format) ? -1 : 1;
  if (magnitude > format.largest_finite)
    return format.has_infinity() && magnitude == format.overflow ? sign * kInfinity : kNan;
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const double fraction = std::ldexp(magnitude & ((1u << format.mantissa_bits) - 1), -format.mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                               : std::ldexp(1 + fraction, exponent - format.bias));
}

TEST(SmallFloats, EveryCodeHasTheValueOfItsDefinition) {
  for (const Case& c : kCases) {
    for (uint32_t code = 0; code < 1u << c.format.bits(); ++code) {
      const double expected = defined(c.format, code);
      const float found = c.widen(code);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(found)) << c.name << ' ' << code;
      } else {
        ASSERT_EQ(found, expected) << c.name << ' ' << code;
        ASSERT_EQ(std::signbit(found), std::signbit(expected)) << c.name << ' ' << code;
      }
    }
  }
}

TEST(SmallFloats, EveryCodeSurvives) {
  for (const Case& c : kCases) {
    for (uint32_t code = 0; code < 1u << c.format.bits(); ++code) {
      const float value = c.widen(code);
      const uint32_t again = c.narrow(value);
      ASSERT_EQ(again, c.narrow_float(value)) << c.name << ' ' << code;
      if (std::isnan(value)) {
        const uint32_t sign = c.format.has_negative_zero ? code & sign_of(c.format) : 0;
        ASSERT_EQ(again, c.format.nan | sign) << c.name << ' ' << code;
      } else {
        ASSERT_EQ(again, code) << c.name;
      }
    }
  }
}

// Between two neighbours: rounds to nearest, ties to the even code. Halfway is a float, but its neighbours
// among the doubles are not.
TEST(SmallFloats, RoundsToTheNearest) {
  for (const Case& c : kCases) {
    for (uint32_t code = 0; code < c.format.largest_finite; ++code) {
      const double low = c.widen(code);
      const double high = c.widen(code + 1);
      ASSERT_LT(low, high) << c.name << ' ' << code;
      const double middle = low + (high - low) / 2;
      const auto middle_float = static_cast<float>(middle);
      const uint32_t even = code % 2 == 0 ? code : code + 1;
      ASSERT_EQ(c.narrow(std::nextafter(middle, low)), code) << c.name;
      ASSERT_EQ(c.narrow(middle), even) << c.name << ' ' << code;
      ASSERT_EQ(c.narrow(std::nextafter(middle, high)), code + 1) << c.name;
      ASSERT_EQ(middle_float, middle);
      ASSERT_EQ(c.narrow_float(std::nextafter(middle_float, 0.0f)), code) << c.name;
      ASSERT_EQ(c.narrow_float(middle_float), even) << c.name << ' ' << code;
      ASSERT_EQ(c.narrow_float(std::nextafter(middle_float, kInfinity)), code + 1) << c.name;
      const bool is_zero = code == 0 && !c.format.has_negative_zero;
      if (c.format.has_sign) {
        ASSERT_EQ(c.narrow(-low), is_zero ? 0 : code | sign_of(c.format)) << c.name;
        ASSERT_EQ(c.narrow(-std::nextafter(middle, high)), (code + 1) | sign_of(c.format)) << c.name;
      }
    }
  }
}

TEST(SmallFloats, AFloatRoundsAsTheSameDouble) {
  for (const Case& c : kCases) {
    for (uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += 4099) {
      const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
      ASSERT_EQ(c.narrow_float(value), c.narrow(static_cast<double>(value))) << c.name << ' ' << bits;
    }
    for (const float value : {0.0f, -0.0f, kInfinity, -kInfinity, kNan, -kNan, 1e30f, -1e30f, 1e-30f, -1e-30f,
                              std::numeric_limits<float>::denorm_min()})
      EXPECT_EQ(c.narrow_float(value), c.narrow(static_cast<double>(value))) << c.name << ' ' << value;
  }
}

TEST(SmallFloats, LargestValuesAndBeyond) {
  EXPECT_EQ(widen<kF16>(0x7BFF), 65504.0f);
  EXPECT_EQ(widen<kBf16>(0x7F7F), 3.38953139e38f);
  EXPECT_EQ(widen<kF8E5M2>(0x7B), 57344.0f);
  EXPECT_EQ(widen<kF8E4M3FN>(0x7E), 448.0f);
  EXPECT_EQ(widen<kF8E5M2FNUZ>(0x7F), 57344.0f);
  EXPECT_EQ(widen<kF8E4M3FNUZ>(0x7F), 240.0f);
  EXPECT_EQ(widen<kF8E8M0FNU>(0xFE), std::ldexp(1.0f, 127));
  EXPECT_EQ(widen<kF8E5M2>(0x01), std::ldexp(1.0f, -16));
  EXPECT_EQ(widen<kF8E4M3FN>(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(widen<kF8E5M2FNUZ>(0x01), std::ldexp(1.0f, -17));
  EXPECT_EQ(widen<kF8E4M3FNUZ>(0x01), std::ldexp(1.0f, -10));
  EXPECT_EQ(narrow<kF16>(65519.999), 0x7BFFu);
  EXPECT_EQ(narrow<kF16>(65519.996f), 0x7BFFu);
  EXPECT_EQ(narrow<kF16>(65520.0), 0x7C00u);
  EXPECT_EQ(narrow<kF8E4M3FN>(464.0), 0x7Eu);
  EXPECT_EQ(narrow<kF8E4M3FN>(464.001), 0x7Fu);
  EXPECT_EQ(narrow<kF8E4M3FN>(-1e300), 0xFFu);
  EXPECT_EQ(narrow<kF8E5M2>(61440.0), 0x7Cu);
  EXPECT_EQ(narrow<kF8E5M2>(61439.0), 0x7Bu);
  EXPECT_EQ(narrow<kF8E4M3FNUZ>(247.9), 0x7Fu);
  EXPECT_EQ(narrow<kF8E4M3FNUZ>(248.0), 0x80u);
  EXPECT_EQ(narrow<kF8E5M2FNUZ>(-1e9), 0x80u);
  EXPECT_EQ(narrow<kF8E8M0FNU>(std::ldexp(1.5, 127)), 0xFEu);
  EXPECT_EQ(narrow<kF8E8M0FNU>(std::ldexp(1.6, 127)), 0xFFu);
  EXPECT_EQ(narrow<kF8E8M0FNU>(-1.0), 0xFFu);
  EXPECT_EQ(narrow<kF8E8M0FNU>(-0.0), 0u);
  for (const Case& c : kCases) {
    EXPECT_EQ(c.narrow(std::nan("")), c.format.nan) << c.name;
    EXPECT_EQ(c.narrow(5e-324), 0u) << c.name;
    const uint32_t beyond = c.narrow(std::numeric_limits<double>::max());
    EXPECT_EQ(beyond, c.format.overflow) << c.name;
    EXPECT_EQ(beyond, c.narrow(std::numeric_limits<double>::infinity())) << c.name;
    EXPECT_EQ(std::isinf(c.widen(beyond)), c.format.has_infinity()) << c.name;
  }
}

TEST(SmallFloats, KnownRoundings) {
  EXPECT_EQ(narrow<kF16>(1.0 + std::ldexp(1.0, -11)), 0x3C00u);  // halfway between 1 and its successor
  EXPECT_EQ(narrow<kF16>(1.0 + 3 * std::ldexp(1.0, -11)), 0x3C02u);
  EXPECT_EQ(narrow<kF16>(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 0x3C01u);  // no float has it
  EXPECT_EQ(narrow<kF16>(2.0 - std::ldexp(1.0, -12)), 0x4000u);  // carries into the exponent
  EXPECT_EQ(narrow<kF16>(0x1p-25f), 0u);
  EXPECT_EQ(narrow<kF16>(0x1.000002p-25f), 1u);
  EXPECT_EQ(narrow<kF16>(0x1.8p-24f), 2u);
  EXPECT_EQ(narrow<kF16>(-0.0), 0x8000u);
  EXPECT_EQ(narrow<kBf16>(0x1.01p0f), 0x3F80u);
  EXPECT_EQ(narrow<kBf16>(0x1.03p0f), 0x3F82u);
  static_assert(narrow<kF16>(1.0f) == 0x3C00 && widen<kBf16>(0x4049) == 3.140625f);
}

// Dropped: one NaN, with the sign. Kept: the upper bits survive, and rounding makes a NaN quiet.
TEST(SmallFloats, BitsOfNan) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  const auto nan = std::bit_cast<float>(0xFFA04001);
  EXPECT_EQ(narrow<kF16>(nan), 0xFE00u);
  EXPECT_EQ((narrow<kF16, NanBits::kept>(nan)), 0xFF02u);
  EXPECT_EQ(narrow<kBf16>(nan), 0xFFC0u);
  EXPECT_EQ((narrow<kBf16, NanBits::kept>(nan)), 0xFFE0u);
  EXPECT_EQ(narrow<kF8E4M3FN>(nan), 0xFFu);
  EXPECT_EQ(narrow<kF8E4M3FNUZ>(nan), 0x80u);
  EXPECT_EQ(bits(widen<kF16>(0xFD01)), 0xFFC00000u);
  EXPECT_EQ(bits(widen<kF16, NanBits::kept>(0xFD01)), 0xFFA02000u);
  EXPECT_EQ(bits(widen<kBf16>(0xFFA1)), 0xFFC00000u);
  EXPECT_EQ(bits(widen<kBf16, NanBits::kept>(0xFFA1)), 0xFFA10000u);
  for (uint32_t code = 0; code <= 0xFFFF; ++code) {
    // Of all other codes nothing differs.
    if (!std::isnan(widen<kF16>(code))) {
      ASSERT_EQ(bits(widen<kF16>(code)), bits(widen<kF16, NanBits::kept>(code)));
      ASSERT_EQ((narrow<kF16, NanBits::kept>(widen<kF16>(code))), code);
    }
    if (!std::isnan(widen<kBf16>(code))) {
      ASSERT_EQ(bits(widen<kBf16>(code)), bits(widen<kBf16, NanBits::kept>(code)));
      ASSERT_EQ((narrow<kBf16, NanBits::kept>(widen<kBf16>(code))), code);
    }
  }
}

}  // namespace
}  // namespace halyard::small_floats
