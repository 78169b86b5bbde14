// Counting with one thread (without atomic instructions) and with several.
#include "base/atomics.h"

#include <gtest/gtest.h>

#include <thread>

namespace halyard {
namespace {

// As the members of std::atomic do.
void change_everything() {
  std::atomic<uint32_t> count = 5;
  EXPECT_EQ(fetch_add(count, 3, std::memory_order_relaxed), 5u);
  EXPECT_EQ(fetch_sub(count, 7, std::memory_order_acq_rel), 8u);
  EXPECT_EQ(exchange(count, 9, std::memory_order_acquire), 1u);
  uint32_t expected = 8;
  EXPECT_FALSE(compare_exchange(count, expected, 1, std::memory_order_release));
  EXPECT_EQ(expected, 9u);
  EXPECT_TRUE(compare_exchange(count, expected, 1, std::memory_order_release));
  EXPECT_EQ(count.load(), 1u);
  EXPECT_EQ(fetch_sub(count, 2, std::memory_order_relaxed), 1u);
  EXPECT_EQ(count.load(), UINT32_MAX);
}

TEST(Atomics, ChangeWhatTheyAreGiven) {
  change_everything();
  std::thread(change_everything).join();
}

TEST(Atomics, LoseNothingBetweenThreads) {
  constexpr int kTurns = 200'000;
  std::atomic<uint32_t> count = 0;
  const auto work = [&] {
    EXPECT_FALSE(single_threaded());
    for (int i = 0; i < kTurns; ++i) fetch_add(count, 2, std::memory_order_relaxed);
    for (int i = 0; i < kTurns; ++i) fetch_sub(count, 1, std::memory_order_relaxed);
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(count.load(), 2u * kTurns);
}

}  // namespace
}  // namespace halyard
