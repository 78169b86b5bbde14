// exp, tanh and erf of f32, beside the functions of f64.
#include "vm/decode/elementary.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace halyard::vm {
namespace {

struct Function {
  const char* name;
  float (*ours)(float);
  double (*exact)(double);
};
constexpr Function kFunctions[] = {{"exp", exponential, std::exp},
                                   {"tanh", hyperbolic_tangent, std::tanh},
                                   {"erf", error_function, std::erf}};

// How many floats lie between the two.
int64_t distance(float x, float y) {
  const auto number = [](float of) {
    const auto bits = std::bit_cast<int32_t>(of);
    return bits < 0 ? int64_t{INT32_MIN} - bits : int64_t{bits};
  };
  return std::abs(number(x) - number(y));
}

// One of 509 floats, from all of them.
TEST(Elementary, IsAlmostAlwaysTheNearestFloat) {
  for (const Function& function : kFunctions) {
    size_t all = 0, not_nearest = 0;
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 509) {
      const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (std::isnan(x)) continue;
      const auto nearest = static_cast<float>(function.exact(x));
      const float found = function.ours(x);
      ASSERT_LE(distance(found, nearest), 1) << function.name << ' ' << x;
      ASSERT_EQ(std::signbit(found), std::signbit(nearest)) << function.name << ' ' << x;
      not_nearest += found != nearest;
      ++all;
    }
    EXPECT_LT(not_nearest, all / 1000) << function.name;
  }
}

TEST(Elementary, HasTheLimitsOfF32) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exponential(kInfinity), kInfinity);
  EXPECT_EQ(exponential(-kInfinity), 0.0f);
  EXPECT_EQ(exponential(88.72284f), kInfinity);
  EXPECT_EQ(exponential(88.72283f), static_cast<float>(std::exp(double{88.72283f})));
  EXPECT_EQ(exponential(-103.97207f), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(exponential(-103.97209f), 0.0f);
  EXPECT_EQ(exponential(0.0f), 1.0f);
  float (*const bounded[])(float) = {hyperbolic_tangent, error_function};
  for (const auto of : bounded) {
    EXPECT_EQ(of(kInfinity), 1.0f);
    EXPECT_EQ(of(-kInfinity), -1.0f);
    EXPECT_EQ(of(1e30f), 1.0f);
    EXPECT_EQ(std::bit_cast<uint32_t>(of(0.0f)), 0u);
    EXPECT_EQ(std::bit_cast<uint32_t>(of(-0.0f)), 0x80000000u);
  }
  EXPECT_EQ(hyperbolic_tangent(std::numeric_limits<float>::denorm_min()),
            std::numeric_limits<float>::denorm_min());
}

TEST(Elementary, MakesNaNsQuiet) {
  for (const Function& function : kFunctions) {
    for (const uint32_t bits : {0x7FC00000u, 0xFFC12345u, 0x7F800001u, 0xFF812345u}) {
      const float found = function.ours(std::bit_cast<float>(bits));
      EXPECT_EQ(std::bit_cast<uint32_t>(found), bits | 0x400000) << function.name;
    }
  }
}

}  // namespace
}  // namespace halyard::vm
