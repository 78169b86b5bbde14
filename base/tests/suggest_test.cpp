// Suggestions for misspelt names.
#include "text/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace halyard {
namespace {

const std::vector<std::string_view> kNames = {"simple_mul", "simple_sub", "main", "", "x"};

TEST(Suggest, NamesTheNearest) {
  EXPECT_EQ(did_you_mean("simple_mull", kNames), "; did you mean 'simple_mul'?");
  EXPECT_EQ(did_you_mean("simple_sab", kNames), "; did you mean 'simple_sub'?");
  EXPECT_EQ(did_you_mean("mian", kNames), "; did you mean 'main'?");  // a swap is one edit
  EXPECT_EQ(did_you_mean("MAIN", kNames), "; did you mean 'main'?");
  EXPECT_EQ(did_you_mean("y", kNames), "; did you mean 'x'?");
}

TEST(Suggest, TheFirstOfEquallyNearOnesWins) {
  EXPECT_EQ(did_you_mean("ab", std::vector<std::string_view>{"ac", "ad"}), "; did you mean 'ac'?");
}

TEST(Suggest, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(did_you_mean("convolution", kNames), "");
  EXPECT_EQ(did_you_mean("mxyz", kNames), "");
  EXPECT_EQ(did_you_mean("", kNames), "");
  EXPECT_EQ(did_you_mean("main", {}), "");
}

TEST(Suggest, LongWordsAreNotCompared) {
  const std::string word(65, 'a');
  EXPECT_EQ(did_you_mean(word, std::vector<std::string_view>{word}), "");
}

}  // namespace
}  // namespace halyard
