// Polynomials: arithmetic at the limits of 64 bits, rounding, comparisons, texts.
#include "analysis/expression.h"

#include <gtest/gtest.h>

namespace halyard::analysis {
namespace {

class ExpressionTest : public testing::Test {
 protected:
  Symbols symbols;
  const Expression n = symbols.named("n", true);
  const Expression m = symbols.named("m", true);
  const Expression any = symbols.named("any", false);
};

TEST_F(ExpressionTest, Constants) {
  EXPECT_EQ(symbols.add(2, 3).constant(), 5);
  EXPECT_EQ(symbols.subtract(2, 3).constant(), -1);
  EXPECT_EQ(symbols.multiply(-4, 3).constant(), -12);
  EXPECT_EQ(symbols.divide(-7, 2).constant(), -3);
  EXPECT_EQ(symbols.remainder(-7, 2).constant(), -1);
  EXPECT_EQ(symbols.multiply(n, 0).constant(), 0);
  EXPECT_EQ(symbols.subtract(n, n).constant(), 0);
  EXPECT_FALSE(n.constant());
}

TEST_F(ExpressionTest, Overflow) {
  EXPECT_FALSE(symbols.add(INT64_MAX, 1).constant());
  EXPECT_FALSE(symbols.multiply(INT64_MAX, 2).constant());
  EXPECT_FALSE(symbols.divide(INT64_MIN, -1).constant());
  EXPECT_FALSE(symbols.divide(1, 0).constant());
  EXPECT_FALSE(symbols.remainder(1, 0).constant());
  EXPECT_EQ(symbols.text(symbols.add(symbols.multiply(n, INT64_MIN), 0)), "-9223372036854775808*n");
  // A square of a large polynomial has more terms than there is room for.
  Expression large = 1;
  for (int i = 0; i < 12; ++i)
    large = symbols.multiply(large, symbols.add(symbols.named("s" + std::to_string(i), true), 1));
  EXPECT_LE(large.terms().size(), 32u);
}

TEST_F(ExpressionTest, Polynomials) {
  const Expression square = symbols.multiply(symbols.add(n, m), symbols.subtract(n, m));
  EXPECT_EQ(square, symbols.subtract(symbols.multiply(n, n), symbols.multiply(m, m)));
  EXPECT_EQ(symbols.text(symbols.add(symbols.multiply(4, symbols.multiply(n, m)), 64)), "4*n*m + 64");
  EXPECT_EQ(symbols.text(symbols.subtract(0, n)), "-n");
  EXPECT_EQ(symbols.divide(symbols.multiply(n, 12), 4), symbols.multiply(n, 3));
  EXPECT_EQ(symbols.text(symbols.divide(n, 4)), "(n / 4)");
  EXPECT_EQ(symbols.remainder(symbols.multiply(n, 8), 4).constant(), 0);
}

TEST_F(ExpressionTest, Rounding) {
  const auto rounded_up = [&](const Expression& a) { return symbols.round_down(symbols.add(a, 63), 64); };
  EXPECT_EQ(rounded_up(65).constant(), 128);
  EXPECT_EQ(rounded_up(symbols.multiply(n, 64)), symbols.multiply(n, 64));
  EXPECT_EQ(symbols.text(rounded_up(symbols.multiply(n, 4))), "align(4*n, 64)");
  // Whole units of the constant are not rounded.
  EXPECT_EQ(rounded_up(symbols.add(symbols.multiply(n, 4), 64)),
            symbols.add(rounded_up(symbols.multiply(n, 4)), 64));
  EXPECT_EQ(symbols.round_down(symbols.multiply(n, 4), 1), symbols.multiply(n, 4));
}

TEST_F(ExpressionTest, Comparisons) {
  EXPECT_EQ(symbols.compare(symbols.add(n, 1), n), 1);
  EXPECT_EQ(symbols.compare(n, symbols.add(n, m)), std::nullopt);  // equal if m is 0
  EXPECT_TRUE(symbols.is_at_least(symbols.add(n, m), n));
  EXPECT_FALSE(symbols.is_at_least(n, m));
  EXPECT_FALSE(symbols.is_non_negative(any));
  EXPECT_EQ(symbols.larger(symbols.add(n, 4), n), symbols.add(n, 4));
  EXPECT_EQ(symbols.text(symbols.larger(n, m)), "max(n, m)");
  EXPECT_EQ(symbols.smaller(symbols.add(n, 4), n), n);
}

TEST_F(ExpressionTest, Origins) {
  const Expression unknown = symbols.fresh("an element", true);
  const Expression other = symbols.fresh("an element", true);
  EXPECT_NE(unknown, other);
  const Expression inside = symbols.larger(symbols.multiply(unknown, 4), n);
  EXPECT_TRUE(symbols.depends_on_data(inside));
  EXPECT_FALSE(symbols.depends_on_data(n));
  std::map<std::string, std::string> origins;
  symbols.list_origins(inside, origins);
  EXPECT_EQ(origins, (std::map<std::string, std::string>{{"u1", "an element"}}));
}

}  // namespace
}  // namespace halyard::analysis
