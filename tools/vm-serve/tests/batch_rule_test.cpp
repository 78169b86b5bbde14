// Shares of rows, and what is remembered of them.
#include "batch_rule.h"

#include <gtest/gtest.h>

namespace halyard::tools::serve {
namespace {

using std::chrono::milliseconds;

TEST(BatchRule, OneClientNeverWaitsForOthers) {
  BatchRule rule;
  for (int call = 0; call < 100; ++call) {
    EXPECT_EQ(rule.share(1), 1u);
    EXPECT_EQ(rule.share(2), 1u);
    rule.set_in_flight(1);
    rule.end_call(0, 2, Clock::now());
  }
}

TEST(BatchRule, ContextsShareEvenly) {
  BatchRule rule;
  rule.set_in_flight(16);
  EXPECT_EQ(rule.share(1), 16u);
  EXPECT_EQ(rule.share(2), 8u);
  EXPECT_EQ(rule.share(3), 6u);
  EXPECT_EQ(rule.share(32), 1u);
}

TEST(BatchRule, TheShareStaysWhileAnsweredClientsComeBack) {
  BatchRule rule;
  for (int call = 0; call < 100; ++call) {
    rule.set_in_flight(16);
    EXPECT_EQ(rule.share(2), 8u);
    rule.end_call(8, 2, Clock::now());
    EXPECT_EQ(rule.share(2), 8u) << call;
  }
}

TEST(BatchRule, ClientsThatHaveGoneAreForgotten) {
  BatchRule rule;
  rule.set_in_flight(16);
  int calls = 0;
  for (; rule.share(2) > 1; ++calls) {
    rule.end_call(0, 2, Clock::now());
    rule.set_in_flight(1);
  }
  EXPECT_EQ(calls, 8);
}

TEST(BatchRule, WaitsForAPartOfACall) {
  BatchRule rule;
  const Clock::time_point now = Clock::now();
  EXPECT_EQ(rule.due(now, milliseconds(80)), now + milliseconds(10));
  rule.end_call(0, 1, now + milliseconds(5));
  EXPECT_EQ(rule.due(now, milliseconds(80)), now + milliseconds(15));
  EXPECT_EQ(rule.due(now + milliseconds(50), milliseconds(80)), now + milliseconds(60));
  EXPECT_EQ(rule.due(now + milliseconds(50), std::chrono::microseconds(80)), now + milliseconds(50));
}

}  // namespace
}  // namespace halyard::tools::serve
