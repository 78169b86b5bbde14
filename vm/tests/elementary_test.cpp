// The functions of f32 that Halyard computes itself, beside the functions of f64.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

#include "vm/elementary/functions.h"

namespace halyard::vm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLeast = std::numeric_limits<float>::denorm_min();
constexpr float kMost = std::numeric_limits<float>::max();

using OfF32 = float (*)(float);
using OfF32s = std::initializer_list<OfF32>;

struct Function {
  const char* name;
  float (*ours)(float);
  double (*exact)(double);
};
struct Function2 {
  const char* name;
  float (*ours)(float, float);
  double (*exact)(double, double);
};
#define UNARY(name, function) {#name, function, [](double x) { return std::name(x); }},
#define BINARY(name, in_c, function, one)
constexpr Function kFunctions[] = {
#include "vm/elementary/functions.inc"
};
#undef UNARY
#undef BINARY
#define UNARY(name, function)
#define BINARY(name, in_c, function, one) \
  {#name, function, [](double x, double y) { return std::in_c(x, y); }},
constexpr Function2 kFunctions2[] = {
#include "vm/elementary/functions.inc"
};
#undef UNARY
#undef BINARY

// How many floats lie between the two.
int64_t distance(float x, float y) {
  const auto number = [](float of) {
    const auto bits = std::bit_cast<int32_t>(of);
    return bits < 0 ? int64_t{INT32_MIN} - bits : int64_t{bits};
  };
  return std::abs(number(x) - number(y));
}

// Whether the result is next to that of f64. The sign of a NaN is open.
testing::AssertionResult is_near(float found, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isnan(found) && std::isnan(nearest)) return testing::AssertionSuccess();
  if (!std::isnan(found) && !std::isnan(nearest) && distance(found, nearest) <= 1 &&
      std::signbit(found) == std::signbit(nearest))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << found << ", expected " << nearest;
}

// One of 509 floats, from all of them.
TEST(Elementary, IsAlmostAlwaysTheNearestFloat) {
  for (const Function& function : kFunctions) {
    size_t all = 0, not_nearest = 0;
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 509) {
      const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (std::isnan(x)) continue;
      const double exact = function.exact(x);
      const float found = function.ours(x);
      ASSERT_TRUE(is_near(found, exact)) << function.name << ' ' << x;
      not_nearest += !std::isnan(found) && found != static_cast<float>(exact);
      ++all;
    }
    EXPECT_LT(not_nearest, all / 1000) << function.name;
  }
}

// Of all exponents, and of those whose results are neither 0 nor infinite.
TEST(Elementary, OfTwoArgumentsIsAlmostAlwaysTheNearestFloat) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> base(0.0f, 20.0f), exponent(-20.0f, 20.0f);
  for (const Function2& function : kFunctions2) {
    size_t not_nearest = 0;
    constexpr size_t kAll = 1000000;
    for (size_t i = 0; i < kAll; ++i) {
      const bool any = i % 2 == 0;
      const float x = any ? std::bit_cast<float>(static_cast<uint32_t>(random())) : base(random);
      const float y = any ? std::bit_cast<float>(static_cast<uint32_t>(random())) : exponent(random);
      if (std::isnan(x) || std::isnan(y)) continue;
      const double exact = function.exact(x, y);
      const float found = function.ours(x, y);
      ASSERT_TRUE(is_near(found, exact)) << function.name << ' ' << x << ' ' << y;
      not_nearest += !std::isnan(found) && found != static_cast<float>(exact);
    }
    EXPECT_LT(not_nearest, kAll / 1000) << function.name;
  }
}

// All pairs of numbers at which a function of two arguments has another form, NaN with each of them.
TEST(Elementary, OfTwoArgumentsHasTheLimitsOfF32) {
  std::vector<float> numbers;
  for (const float each : {0.0f,
                           kLeast,
                           0x1p-126f,
                           0.25f,
                           0.5f,
                           1 - 0x1p-24f,
                           1.0f,
                           1 + 0x1p-23f,
                           1.5f,
                           2.0f,
                           3.0f,
                           4097.0f,
                           0x1p23f - 0.5f,
                           0x1p24f - 1,
                           0x1p24f,
                           0x1p24f + 2,
                           0x1p25f,
                           0x1p31f,
                           0x1p32f,
                           0x1p100f,
                           kMost,
                           kInfinity,
                           std::numeric_limits<float>::quiet_NaN()}) {
    numbers.push_back(each);
    numbers.push_back(-each);
  }
  for (const Function2& function : kFunctions2)
    for (const float x : numbers)
      for (const float y : numbers)
        EXPECT_TRUE(is_near(function.ours(x, y), function.exact(x, y)))
            << function.name << ' ' << x << ' ' << y;
}

// The same bits, also next to quotients that are halves.
TEST(Elementary, RemaindersAreExact) {
  std::mt19937 random(2);
  const auto check = [](float x, float y) {
    if (std::isnan(x) || std::isnan(y)) return;
    const float found = remainder(x, y), exact = std::remainder(x, y);
    if (!std::isnan(exact) || !std::isnan(found)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(exact)) << x << ' ' << y;
    }
  };
  for (int i = 0; i < 200000; ++i) {
    const auto y = std::bit_cast<float>(static_cast<uint32_t>(random()));
    check(std::bit_cast<float>(static_cast<uint32_t>(random())), y);
    const auto number = static_cast<float>(static_cast<int>(random() % 2000) - 1000);
    const float half = (number + 0.5f) * y;
    for (const float x : {number * y, half, std::nextafter(half, 0.0f), std::nextafter(half, kInfinity)})
      check(x, y);
  }
}

TEST(Elementary, PowersOfIntegersAreExact) {
  for (int base = 1; base <= 64; ++base) {
    double product = 1;
    for (int exponent = 0; product < 0x1p24; ++exponent, product *= base) {
      if (base == 1 && exponent > 8) break;
      EXPECT_EQ(power(static_cast<float>(base), static_cast<float>(exponent)), static_cast<float>(product));
      EXPECT_EQ(power(static_cast<float>(-base), static_cast<float>(exponent)),
                static_cast<float>(exponent % 2 ? -product : product));
    }
  }
  for (int exponent = -149; exponent < 128; ++exponent) {
    EXPECT_EQ(binary_exponential(static_cast<float>(exponent)), std::ldexp(1.0f, exponent));
    EXPECT_EQ(binary_logarithm(std::ldexp(1.0f, exponent)), static_cast<float>(exponent));
  }
  float ten = 1;
  for (int exponent = 0; exponent <= 10; ++exponent, ten *= 10)
    EXPECT_EQ(decimal_logarithm(ten), static_cast<float>(exponent));
}

// Angles of all sizes. Next to multiples of a quarter turn, the result depends on late bits of 2 / pi.
TEST(Elementary, AnglesNextToQuarterTurns) {
  for (int exponent = -2; exponent < 128; ++exponent) {
    for (uint32_t i = 0; i < 4096; ++i) {
      const float x = std::ldexp(1.0f + static_cast<float>(i * 2039 % 0x800000) * 0x1p-23f, exponent);
      ASSERT_TRUE(is_near(sine(x), std::sin(double{x}))) << x;
      ASSERT_TRUE(is_near(cosine(x), std::cos(double{x}))) << x;
    }
  }
  for (const double turns : {1.0, 2.0, 3.0, 11.0, 22.0, 333.0, 355.0, 710.0, 103993.0, 0x1p22, 0x1p23 + 1})
    for (const float step : {-1.0f, 0.0f, 1.0f}) {
      const auto nearest = static_cast<float>(turns * elementary::kQuarterTurn);
      const float x = step == 0 ? nearest : std::nextafter(nearest, step * kInfinity);
      EXPECT_TRUE(is_near(sine(x), std::sin(double{x}))) << x;
      EXPECT_TRUE(is_near(cosine(x), std::cos(double{x}))) << x;
    }
  // Of all f32 from 1 on, these are nearest to multiples of a quarter turn; and the largest f32.
  for (const float x : {0x1.f9cbe2p+7f, 0x1.47d0fep+34f, 0x1.f37c8ap+95f, kMost}) {
    EXPECT_TRUE(is_near(sine(x), std::sin(double{x}))) << x;
    EXPECT_TRUE(is_near(cosine(-x), std::cos(double{x}))) << x;
  }
}

TEST(Elementary, HasTheLimitsOfF32) {
  EXPECT_EQ(exponential(kInfinity), kInfinity);
  EXPECT_EQ(exponential(-kInfinity), 0.0f);
  EXPECT_EQ(exponential(88.72284f), kInfinity);
  EXPECT_EQ(exponential(88.72283f), static_cast<float>(std::exp(double{88.72283f})));
  EXPECT_EQ(exponential(-103.97207f), kLeast);
  EXPECT_EQ(exponential(-103.97209f), 0.0f);
  EXPECT_EQ(exponential(0.0f), 1.0f);
  EXPECT_EQ(binary_exponential(128.0f), kInfinity);
  EXPECT_EQ(binary_exponential(-150.0f), 0.0f);
  EXPECT_EQ(binary_exponential(std::nextafter(-150.0f, 0.0f)), kLeast);
  EXPECT_EQ(exponential_less_one(kInfinity), kInfinity);
  EXPECT_EQ(exponential_less_one(-kInfinity), -1.0f);
  for (const OfF32 of : OfF32s{natural_logarithm, binary_logarithm, decimal_logarithm}) {
    EXPECT_EQ(of(0.0f), -kInfinity);
    EXPECT_EQ(of(-0.0f), -kInfinity);
    EXPECT_EQ(of(kInfinity), kInfinity);
    EXPECT_EQ(std::bit_cast<uint32_t>(of(1.0f)), 0u);
    for (const float negative : {-kLeast, -1.0f, -kMost, -kInfinity}) EXPECT_TRUE(std::isnan(of(negative)));
  }
  EXPECT_EQ(logarithm_of_one_plus(-1.0f), -kInfinity);
  EXPECT_TRUE(std::isnan(logarithm_of_one_plus(std::nextafter(-1.0f, -2.0f))));
  for (const OfF32 of : OfF32s{sine, cosine})
    for (const float infinite : {kInfinity, -kInfinity}) EXPECT_TRUE(std::isnan(of(infinite)));
  for (const OfF32 of : OfF32s{hyperbolic_tangent, error_function}) {
    EXPECT_EQ(of(kInfinity), 1.0f);
    EXPECT_EQ(of(-kInfinity), -1.0f);
    EXPECT_EQ(of(1e30f), 1.0f);
  }
}

// Of an odd function, the smallest number and -0 are their own results.
TEST(Elementary, KeepsZerosAndTheirSigns) {
  for (const OfF32 of :
       OfF32s{sine, arctangent, hyperbolic_tangent, exponential_less_one, logarithm_of_one_plus}) {
    EXPECT_EQ(of(kLeast), kLeast);
    EXPECT_EQ(of(-kLeast), -kLeast);
  }
  for (const OfF32 of : OfF32s{sine, arctangent, hyperbolic_tangent, exponential_less_one,
                               logarithm_of_one_plus, error_function}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(of(0.0f)), 0u);
    EXPECT_EQ(std::bit_cast<uint32_t>(of(-0.0f)), 0x80000000u);
  }
}

TEST(Elementary, MakesNaNsQuiet) {
  for (const uint32_t bits : {0x7FC00000u, 0xFFC12345u, 0x7F800001u, 0xFF812345u}) {
    const auto nan = std::bit_cast<float>(bits);
    for (const Function& function : kFunctions)
      EXPECT_EQ(std::bit_cast<uint32_t>(function.ours(nan)), bits | 0x400000) << function.name;
    for (const Function2& function : kFunctions2) {
      EXPECT_EQ(std::bit_cast<uint32_t>(function.ours(nan, 2.0f)), bits | 0x400000) << function.name;
      EXPECT_EQ(std::bit_cast<uint32_t>(function.ours(2.0f, nan)), bits | 0x400000) << function.name;
    }
    EXPECT_EQ(power(nan, 0.0f), 1.0f);
    EXPECT_EQ(power(1.0f, nan), 1.0f);
  }
}

}  // namespace
}  // namespace halyard::vm
