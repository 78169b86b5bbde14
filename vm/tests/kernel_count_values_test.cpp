// The values that counting gives to integer registers, compared with plain arithmetic: of constants, of
// values that change from iteration to iteration, and the bounds of all iterations.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "vm/count/instructions.h"

namespace halyard::vm::test {
namespace {

using CountedValue = std::optional<int64_t>;  // none: undefined
using CountedFunction = std::function<CountedValue(int64_t, int64_t, int64_t)>;

struct CountedCase {
  Op op;
  Bank bank;
  int operands;
  CountedFunction of;
};

template <typename S>
constexpr int kBitsOf = 8 * sizeof(S);

// The instructions of one width; S is its signed type.
template <typename S>
std::vector<CountedCase> cases_of(Bank bank, const std::vector<Op>& ops) {
  using U = std::make_unsigned_t<S>;
  const auto u = [](int64_t x) { return static_cast<U>(x); };
  const auto s = [](auto x) { return CountedValue(static_cast<S>(x)); };
  const CountedFunction functions[] = {
      [=](auto x, auto y, auto) { return s(u(x) + u(y)); },
      [=](auto x, auto y, auto) { return s(u(x) - u(y)); },
      [=](auto x, auto y, auto) { return s(u(x) * u(y)); },
      [=](auto x, auto y, auto z) { return s(u(x) * u(y) + u(z)); },
      [=](auto x, auto y, auto) {
        return y == 0 || (y == -1 && x == std::numeric_limits<S>::min()) ? CountedValue() : s(x / y);
      },
      [=](auto x, auto y, auto) { return y == 0    ? CountedValue()
                                         : y == -1 ? s(0)
                                                   : s(x % y); },
      [=](auto x, auto y, auto) { return y == 0 ? CountedValue() : s(u(x) / u(y)); },
      [=](auto x, auto y, auto) { return y == 0 ? CountedValue() : s(u(x) % u(y)); },
      [=](auto x, auto, auto) { return s(~u(x)); },
      [=](auto x, auto y, auto) { return s(u(x) & u(y)); },
      [=](auto x, auto y, auto) { return s(u(x) | u(y)); },
      [=](auto x, auto y, auto) { return s(u(x) ^ u(y)); },
      [=](auto x, auto y, auto) { return s(u(x) << (y & (kBitsOf<S> - 1))); },
      [=](auto x, auto y, auto) { return s(static_cast<S>(x) >> (y & (kBitsOf<S> - 1))); },
      [=](auto x, auto y, auto) { return s(u(x) >> (y & (kBitsOf<S> - 1))); },
      [=](auto x, auto y, auto) { return s(std::min(x, y)); },
      [=](auto x, auto y, auto) { return s(std::max(x, y)); },
      [=](auto x, auto y, auto) { return s(std::min(u(x), u(y))); },
      [=](auto x, auto y, auto) { return s(std::max(u(x), u(y))); },
      [=](auto x, auto, auto) {
        return x == std::numeric_limits<S>::min() ? CountedValue() : s(x < 0 ? -x : x);
      },
      [=](auto x, auto, auto) { return s(std::countl_zero(u(x))); },
      [=](auto x, auto y, auto) { return s(x == y); },
      [=](auto x, auto y, auto) { return s(x != y); },
      [=](auto x, auto y, auto) { return s(x < y); },
      [=](auto x, auto y, auto) { return s(u(x) < u(y)); },
      [=](auto x, auto, auto) { return s(x != 0); },
      [=](auto x, auto y, auto z) { return s(x != 0 ? y : z); },
  };
  std::vector<CountedCase> found;
  for (size_t i = 0; i < ops.size(); ++i) {
    const int operands = i == 3 || i == 26 ? 3 : i == 8 || i == 19 || i == 20 || i == 25 ? 1 : 2;
    found.push_back({ops[i], bank, operands, functions[i]});
  }
  return found;
}

#define HALYARD_OPS_OF(width)                                                                \
  {Op::add_##width,        Op::sub_##width,     Op::mul_##width,     Op::fma_##width,        \
   Op::div_##width##_s,    Op::rem_##width##_s, Op::div_##width##_u, Op::rem_##width##_u,    \
   Op::not_##width,        Op::and_##width,     Op::or_##width,      Op::xor_##width,        \
   Op::shl_##width,        Op::shr_##width##_s, Op::shr_##width##_u, Op::min_##width##_s,    \
   Op::max_##width##_s,    Op::min_##width##_u, Op::max_##width##_u, Op::abs_##width,        \
   Op::ctlz_##width,       Op::cmp_eq_##width,  Op::cmp_ne_##width,  Op::cmp_lt_##width##_s, \
   Op::cmp_lt_##width##_u, Op::cmp_nz_##width,  Op::select_##width}

std::vector<CountedCase> all_cases() {
  std::vector<CountedCase> all = cases_of<int32_t>(Bank::i32, HALYARD_OPS_OF(i32));
  for (CountedCase& each : cases_of<int64_t>(Bank::i64, HALYARD_OPS_OF(i64))) all.push_back(std::move(each));
  const auto convert = [&](Op op, Bank bank, CountedFunction of) {
    all.push_back({op, bank, 1, std::move(of)});
  };
  convert(Op::trunc_i32_i8, Bank::i32, [](auto x, auto, auto) { return CountedValue(x & 0xFF); });
  convert(Op::trunc_i32_i16, Bank::i32, [](auto x, auto, auto) { return CountedValue(x & 0xFFFF); });
  convert(Op::ext_i8_i32_u, Bank::i32, [](auto x, auto, auto) { return CountedValue(x & 0xFF); });
  convert(Op::ext_i16_i32_u, Bank::i32, [](auto x, auto, auto) { return CountedValue(x & 0xFFFF); });
  convert(Op::ext_i8_i32_s, Bank::i32,
          [](auto x, auto, auto) { return CountedValue(static_cast<int8_t>(x)); });
  convert(Op::ext_i16_i32_s, Bank::i32,
          [](auto x, auto, auto) { return CountedValue(static_cast<int16_t>(x)); });
  convert(Op::trunc_i64_i32, Bank::i64,
          [](auto x, auto, auto) { return CountedValue(static_cast<int32_t>(x)); });
  convert(Op::ext_i32_i64_s, Bank::i32, [](auto x, auto, auto) { return CountedValue(x); });
  convert(Op::ext_i32_i64_u, Bank::i32,
          [](auto x, auto, auto) { return CountedValue(static_cast<uint32_t>(x)); });
  return all;
}

// Results of 32 bits are wrapped when a register takes them.
int64_t in_register(const CountedCase& at, int64_t value) {
  const bool is_wide = at.op == Op::ext_i32_i64_s || at.op == Op::ext_i32_i64_u ||
                       (at.bank == Bank::i64 && at.op != Op::trunc_i64_i32);
  return is_wide ? value : static_cast<int32_t>(value);
}

std::string name_of(const CountedCase& at) { return std::string(info(at.op).mnemonic()); }

TEST(KernelCountValues, OfConstantsAreThoseOfTheInstruction) {
  std::vector<int64_t> numbers = {0,  1,  -1,  2,   3,   7,   -8,    31,        33,
                                  63, 64, 127, 128, 255, 256, 40000, INT32_MAX, INT32_MIN};
  for (const CountedCase& at : all_cases()) {
    SCOPED_TRACE(name_of(at));
    std::vector<int64_t> all = numbers;
    if (at.bank == Bank::i64)
      all.insert(all.end(), {INT64_MAX, INT64_MIN, int64_t{1} << 32, (int64_t{1} << 40) + 5});
    const std::vector<int64_t> one = {0};
    for (const int64_t x : all)
      for (const int64_t y : at.operands > 1 ? all : one)
        for (const int64_t z : at.operands > 2 ? std::vector<int64_t>{0, 1, -5} : one) {
          const CountedValue expected = at.of(x, y, z);
          const Scalar result =
              result_of(at.op, at.bank, {constant_scalar(x), constant_scalar(y), constant_scalar(z)}, 0);
          // An undefined result fails when the kernel runs; it may have any value here.
          if (!expected) continue;
          ASSERT_TRUE(result.is_constant()) << x << ' ' << y << ' ' << z;
          ASSERT_EQ(in_register(at, result.value), in_register(at, *expected)) << x << ' ' << y << ' ' << z;
        }
  }
}

TEST(KernelCountValues, OfUnknownsAreUnknown) {
  for (const CountedCase& at : all_cases()) {
    SCOPED_TRACE(name_of(at));
    for (int unknown = 0; unknown < at.operands; ++unknown) {
      Operands<Scalar> in = {constant_scalar(5), constant_scalar(3), constant_scalar(2)};
      in[static_cast<size_t>(unknown)] = unknown_scalar();
      const bool is_other_choice =
          at.operands == 3 && unknown == 2 && (at.op == Op::select_i32 || at.op == Op::select_i64);
      EXPECT_EQ(result_of(at.op, at.bank, in, 0).is_known, is_other_choice) << unknown;
      EXPECT_FALSE(bounds_of_result(at.op, {}).is_constant());
    }
  }
  EXPECT_FALSE(result_of(Op::buffer_length, Bank::i64, {}, 0).is_known);
  EXPECT_EQ(result_of(Op::const_i32, Bank::none, {}, -7).value, -7);
  EXPECT_EQ(result_of(Op::const_i64_zero, Bank::none, {}, -7).value, 0);
}

struct CountedDraw {
  std::mt19937_64 random{7};
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution(low, high)(random); }
};

// A register that a loop changes by `slope` in each iteration.
Scalar linear_scalar(int64_t value, int64_t slope) {
  Scalar scalar = constant_scalar(value);
  if (slope == 0) return scalar;
  scalar.varies = 1;
  scalar.slope[0] = slope;
  return scalar;
}

TEST(KernelCountValues, ThatAreLinearAreSoInEveryIteration) {
  CountedDraw draw;
  size_t linear_results = 0, comparisons = 0;
  for (const CountedCase& at : all_cases()) {
    SCOPED_TRACE(name_of(at));
    for (int run = 0; run < 400; ++run) {
      int64_t value[3], slope[3];
      Operands<Scalar> in;
      for (size_t i = 0; i < 3; ++i) {
        value[i] = draw.between(-300, 300);
        slope[i] = draw.between(0, 1) ? draw.between(-40, 40) : 0;
        in[i] = linear_scalar(value[i], slope[i]);
      }
      const Scalar result = result_of(at.op, at.bank, in, 0);
      if (!result.is_known) continue;
      const bool is_comparison = result.compare != Scalar::Compare::none;
      linear_results += result.is_linear && result.varies != 0 && !is_comparison;
      comparisons += is_comparison;
      for (int64_t turn = 0; turn < 6; ++turn) {
        const auto now = [&](size_t i) { return value[i] + turn * slope[i]; };
        const CountedValue expected = at.of(now(0), now(1), now(2));
        if (!expected) break;
        if (turn > 0 && !result.is_linear) break;
        int64_t found = result.value + turn * result.slope[0];
        if (is_comparison) {
          const int64_t difference = result.difference + turn * result.slope[0];
          found = result.compare == Scalar::Compare::less    ? difference < 0
                  : result.compare == Scalar::Compare::equal ? difference == 0
                                                             : difference != 0;
        } else if (result.varies == 0) {
          found = result.value;
        }
        // What wraps along the way is not linear, as far as the first value shows; see Counter::write().
        if (result.value != in_register(at, result.value)) break;
        if (at.bank == Bank::i32 && at.op == Op::ext_i32_i64_u && now(0) < 0) break;
        if ((at.op == Op::trunc_i32_i8 || at.op == Op::ext_i8_i32_u || at.op == Op::ext_i8_i32_s) &&
            now(0) != *expected)
          break;
        if ((at.op == Op::trunc_i32_i16 || at.op == Op::ext_i16_i32_u) && now(0) < 0) break;
        ASSERT_EQ(in_register(at, found), in_register(at, *expected))
            << "turn " << turn << " of " << value[0] << "+" << slope[0] << ", " << value[1] << "+" << slope[1]
            << ", " << value[2] << "+" << slope[2];
      }
    }
  }
  EXPECT_GT(linear_results, 500u);
  EXPECT_GT(comparisons, 500u);
}

TEST(KernelCountValues, LieWithinTheirBounds) {
  CountedDraw draw;
  size_t known = 0;
  for (const CountedCase& at : all_cases()) {
    SCOPED_TRACE(name_of(at));
    for (int run = 0; run < 200; ++run) {
      Operands<Bounds> in;
      for (Bounds& bounds : in) {
        bounds.low = draw.between(-6, 6);
        bounds.high = bounds.low + draw.between(0, 5);
      }
      const Bounds result = bounds_of_result(at.op, in);
      if (!result.is_known()) continue;
      ++known;
      for (int64_t x = in[0].low; x <= in[0].high; ++x)
        for (int64_t y = in[1].low; y <= in[1].high; ++y)
          for (int64_t z = in[2].low; z <= in[2].high; ++z) {
            const CountedValue value = at.of(x, y, z);
            if (!value) continue;
            ASSERT_TRUE(result.low <= *value && *value <= result.high)
                << x << ' ' << y << ' ' << z << " gives " << *value << ", bounds " << result.low << " to "
                << result.high;
          }
    }
  }
  EXPECT_GT(known, 2000u);
}

TEST(KernelCountValues, BoundsThatDoNotFitAreUnknown) {
  const Bounds most = {INT64_MAX - 1, INT64_MAX}, two = {2, 2}, least = {INT64_MIN, INT64_MIN};
  EXPECT_FALSE(bounds_of_sum(most, two).is_known());
  EXPECT_FALSE(bounds_of_difference(least, two).is_known());
  EXPECT_FALSE(bounds_of_product(most, two).is_known());
  EXPECT_TRUE(bounds_of_product(most, {1, 1}).is_known());
  EXPECT_FALSE(bounds_of_quotient(two, {1, 2}).is_known()) << "another divisor in each iteration";
  EXPECT_FALSE(bounds_of_quotient(two, {-1, -1}).is_known());
  EXPECT_FALSE(bounds_of_remainder(two, {0, 0}).is_known());
  EXPECT_FALSE(bounds_of_either(two, {}).is_known());
  EXPECT_FALSE(bounds_of_result(Op::trunc_i64_i32, {Bounds{0, int64_t{1} << 31}}).is_known());
  EXPECT_FALSE(bounds_of_result(Op::trunc_i64_i32, {Bounds{INT64_MIN, 0}}).is_known());
  EXPECT_FALSE(bounds_of_result(Op::ext_i32_i64_u, {Bounds{-1, 1}}).is_known());
  EXPECT_FALSE(bounds_of_result(Op::min_i64_s, {two, Bounds()}).is_known());
  EXPECT_FALSE(bounds_of_result(Op::max_i64_s, {Bounds(), two}).is_known());
  EXPECT_FALSE(bounds_of_result(Op::and_i64, {two, Bounds{-1, 1}}).is_known());
}

TEST(KernelCountValues, Operations) {
  EXPECT_EQ(operations_of(Op::fma_f32), 2u);
  EXPECT_EQ(operations_of(Op::fma_f64), 2u);
  EXPECT_EQ(operations_of(Op::exp_f32), 1u);
  EXPECT_EQ(operations_of(Op::add_f64), 1u);
  EXPECT_EQ(operations_of(Op::neg_f32), 0u);
  EXPECT_EQ(operations_of(Op::add_i32), 0u);
}

}  // namespace
}  // namespace halyard::vm::test
