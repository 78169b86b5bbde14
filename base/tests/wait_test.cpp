// Waits: their end, notification, and late arrivals.
#include "base/wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace halyard {
namespace {

using namespace std::chrono_literals;

Status lost() { return {Code::DATA_LOSS, "lost"}; }

TEST(Wait, EndsWithItsLastPart) {
  Wait wait;
  wait.begin(2);
  EXPECT_FALSE(wait.arrive());
  EXPECT_TRUE(wait.waiting());
  EXPECT_TRUE(wait.arrive());
  EXPECT_FALSE(wait.waiting());
  EXPECT_TRUE(wait.failure().ok());
  EXPECT_FALSE(wait.arrive()) << "it has ended";
}

TEST(Wait, EndsWithTheFirstFailure) {
  Wait wait;
  wait.begin(3);
  EXPECT_FALSE(wait.arrive());
  EXPECT_TRUE(wait.arrive(lost()));
  EXPECT_FALSE(wait.arrive(Status(Code::ABORTED, "later")));
  EXPECT_EQ(wait.failure().code(), Code::DATA_LOSS);
  wait.begin();
  EXPECT_TRUE(wait.failure().ok()) << "the next wait has not failed";
}

TEST(Wait, EndsAtOnceWhateverIsMissing) {
  Wait wait;
  wait.begin(3);
  wait.end();
  EXPECT_FALSE(wait.waiting());
  EXPECT_FALSE(wait.arrive());
}

TEST(Wait, AbandonedWaitsHaveNoEnd) {
  Wait wait;
  EXPECT_FALSE(wait.abandon());
  wait.begin();
  EXPECT_TRUE(wait.abandon());
  EXPECT_FALSE(wait.arrive());
  EXPECT_FALSE(wait.abandon());
}

TEST(Wait, OnlyArmedWaitsCallTheHook) {
  int calls = 0;
  Wait wait;
  wait.set_hook({[](void* user) { ++*static_cast<int*>(user); }, &calls});
  wait.begin();
  wait.arrive();
  EXPECT_FALSE(wait.arm()) << "arm() reports that the wait has ended";
  EXPECT_EQ(calls, 0);
  wait.begin(2);
  EXPECT_TRUE(wait.arm());
  wait.arrive();
  EXPECT_EQ(calls, 0);
  wait.arrive();
  EXPECT_EQ(calls, 1);
  wait.begin();
  EXPECT_TRUE(wait.arm());
  wait.set_hook({});
  wait.arrive();
  EXPECT_EQ(calls, 1);
}

TEST(Wait, LateWakeupsDoNotEndTheNextWait) {
  const auto wait = make<Wait>();
  const Wakeup late(wait, wait->begin());
  const Wakeup now(wait, wait->begin());
  late.wake();
  EXPECT_TRUE(wait->waiting());
  now.wake();
  EXPECT_FALSE(wait->waiting());
  Wakeup().wake();
}

TEST(Wait, BlocksUntilTheDeadlineOrTheEnd) {
  Wait wait;
  wait.begin();
  const auto soon = Wait::Clock::now() + 5ms;
  EXPECT_FALSE(wait.block(soon));
  EXPECT_GE(Wait::Clock::now(), soon);
  std::thread ender([&] { wait.arrive(lost()); });
  EXPECT_TRUE(wait.block({}));
  EXPECT_EQ(wait.failure().code(), Code::DATA_LOSS);
  ender.join();
  EXPECT_TRUE(wait.block(soon)) << "it had ended, whatever the time";
}

// A blocked thread may free the wait at once, while the thread that ended it is still in arrive(). A thread
// that touched the wait afterwards would hang on its lock or be reported by a sanitizer.
TEST(Wait, MayGoAsSoonAsItHasEnded) {
  for (int i = 0; i < 200; ++i) {
    auto wait = std::make_unique<Wait>();
    wait->begin(2);
    std::vector<std::thread> enders;
    std::atomic<int> ended = 0;
    for (int part = 0; part < 2; ++part)
      enders.emplace_back([&ended, raw = wait.get()] { ended += raw->arrive(); });
    EXPECT_TRUE(wait->block({}));
    wait.reset();
    for (std::thread& ender : enders) ender.join();
    EXPECT_EQ(ended, 1);
  }
}

TEST(Wait, ExactlyOnePartEndsIt) {
  for (int i = 0; i < 100; ++i) {
    Wait wait;
    wait.begin(4);
    std::atomic<int> ends = 0;
    std::vector<std::thread> threads;
    for (int part = 0; part < 4; ++part) threads.emplace_back([&] { ends += wait.arrive(); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ends, 1);
  }
}

}  // namespace
}  // namespace halyard
