// Timelines: values, failures, waiting threads, subscribers.
#include <chrono>
#include <thread>

#include "harness.h"

namespace halyard::local_tests {
namespace {

int64_t soon() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count() + 2'000'000;
}

class SemaphoreTest : public LocalTest {
 public:
  // Counts the calls of a subscriber and keeps the last status.
  struct Notice {
    Host* host = nullptr;
    std::atomic<int> calls = 0;
    Outcome outcome;
  };
  static void notify(void* user, halyard_status_t status) {
    auto* notice = static_cast<Notice*>(user);
    notice->outcome = notice->host->take(status);
    ++notice->calls;
  }
  void subscribe(Semaphore semaphore, uint64_t value, Notice& notice) {
    notice.host = &host_;
    EXPECT_OK(DriverTest::subscribe(semaphore, value, notify, &notice));
  }
};
HALYARD_ON_EVERY_DEVICE(SemaphoreTest);

TEST_P(SemaphoreTest, ValueOnlyGrows) {
  Semaphore timeline = semaphore(5);
  EXPECT_EQ(value(timeline), 5u);
  EXPECT_CODE(INVALID_ARGUMENT, signal(timeline, 5));
  EXPECT_CODE(INVALID_ARGUMENT, signal(timeline, 4));
  EXPECT_EQ(value(timeline), 5u);
  EXPECT_OK(signal(timeline, 6));
  EXPECT_OK(signal(timeline, UINT64_MAX));
  EXPECT_EQ(value(timeline), UINT64_MAX);
}

TEST_P(SemaphoreTest, FirstFailureStays) {
  Semaphore timeline = semaphore(3);
  fail(timeline, Code::DATA_LOSS, "first");
  fail(timeline, Code::ABORTED, "second");
  EXPECT_OK(signal(timeline, 9)) << "no effect on a failed semaphore";
  uint64_t untouched = 77;
  const Outcome outcome = query(timeline, &untouched);
  EXPECT_CODE(DATA_LOSS, outcome);
  EXPECT_EQ(outcome.message(), "first");
  EXPECT_EQ(untouched, 77u);
  EXPECT_CODE(DATA_LOSS, wait(timeline, 1)) << "failed, although the value was reached";
}

TEST_P(SemaphoreTest, WaitsForAllOrAny) {
  Semaphore reached = semaphore(4);
  Semaphore pending = semaphore();
  EXPECT_OK(wait(Points(), false, 0));
  EXPECT_OK(wait({{reached, 4}, {reached, 1}}, false, 0));
  EXPECT_CODE(DEADLINE_EXCEEDED, wait(reached, 5, 0));
  EXPECT_CODE(DEADLINE_EXCEEDED, wait({{reached, 4}, {pending, 1}}, false, 0));
  EXPECT_OK(wait({{pending, 1}, {reached, 4}}, true, 0));
  EXPECT_CODE(DEADLINE_EXCEEDED, wait({{pending, 1}, {reached, 5}}, true, 0));
}

TEST_P(SemaphoreTest, FailuresTakePrecedence) {
  Semaphore reached = semaphore(4);
  Semaphore pending = semaphore();
  Semaphore failed = semaphore(9);
  fail(failed, Code::UNAVAILABLE);
  for (const bool any : {false, true}) {
    EXPECT_CODE(UNAVAILABLE, wait({{reached, 1}, {pending, 1}, {failed, 1}}, any, HALYARD_WAIT_FOREVER));
    EXPECT_CODE(UNAVAILABLE, wait({{reached, 1}, {pending, 1}, {failed, 1}}, any, 0));
  }
}

TEST_P(SemaphoreTest, DeadlinePasses) {
  Semaphore pending = semaphore();
  EXPECT_CODE(DEADLINE_EXCEEDED, wait(pending, 1, soon()));
  EXPECT_CODE(DEADLINE_EXCEEDED, wait({{pending, 1}}, true, 1)) << "a deadline that has passed long ago";
  EXPECT_CODE(DEADLINE_EXCEEDED, wait({{pending, 1}}, true, -5));
  // The timeline still works after waits that were cancelled.
  EXPECT_OK(signal(pending, 1));
  EXPECT_OK(wait(pending, 1, soon()));
}

TEST_P(SemaphoreTest, WakesBlockedThreads) {
  const auto [first, second] = semaphores<2>();
  Outcome all, any, failing;
  Semaphore never = semaphore();
  std::thread waits_for_all([&] { all = wait({{first, 2}, {second, 1}}, false, HALYARD_WAIT_FOREVER); });
  std::thread waits_for_any([&] { any = wait({{never, 1}, {second, 1}}, true, HALYARD_WAIT_FOREVER); });
  std::thread waits_in_vain([&] { failing = wait({{second, 1}, {never, 1}}, false, HALYARD_WAIT_FOREVER); });
  EXPECT_OK(signal(first, 1));
  EXPECT_OK(signal(second, 1));
  EXPECT_OK(signal(first, 2));
  waits_for_all.join();
  waits_for_any.join();
  fail(never, Code::CANCELLED);
  waits_in_vain.join();
  EXPECT_OK(all);
  EXPECT_OK(any);
  EXPECT_CODE(CANCELLED, failing);
}

TEST_P(SemaphoreTest, PingPong) {
  const auto [ping, pong] = semaphores<2>();
  constexpr uint64_t kRounds = 500;
  std::thread other([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      EXPECT_OK(wait(ping, round));
      EXPECT_OK(signal(pong, round));
    }
  });
  for (uint64_t round = 1; round <= kRounds; ++round) {
    EXPECT_OK(signal(ping, round));
    EXPECT_OK(wait(pong, round));
  }
  other.join();
  EXPECT_EQ(value(pong), kRounds);
}

TEST_P(SemaphoreTest, CallsSubscribersOnce) {
  Semaphore timeline = semaphore(1);
  Notice now, later, at_failure;
  subscribe(timeline, 1, now);
  EXPECT_EQ(now.calls, 1) << "nothing to wait for";
  subscribe(timeline, 3, later);
  subscribe(timeline, 10, at_failure);
  EXPECT_OK(signal(timeline, 2));
  EXPECT_EQ(later.calls, 0);
  EXPECT_OK(signal(timeline, 5));
  EXPECT_EQ(later.calls, 1);
  EXPECT_OK(later.outcome);
  fail(timeline, Code::INTERNAL, "broken");
  EXPECT_EQ(at_failure.calls, 1);
  EXPECT_CODE(INTERNAL, at_failure.outcome);
  EXPECT_EQ(later.calls, 1);

  Notice after;
  subscribe(timeline, 1, after);
  EXPECT_EQ(after.calls, 1);
  EXPECT_CODE(INTERNAL, after.outcome);
}

// In any order of arrival, each waiter is notified at its value, and can be removed from any position in the
// list.
TEST_P(SemaphoreTest, SubscribersInAnyOrder) {
  const std::vector<uint64_t> values = {5, 3, 8, 3, 1, 8, 2, 9, 4, 5};
  for (size_t leaver = 0; leaver < values.size(); ++leaver) {
    Semaphore timeline = semaphore();
    std::vector<Notice> notices(values.size());
    for (size_t i = 0; i < values.size(); ++i) subscribe(timeline, values[i], notices[i]);
    EXPECT_EQ(table_.semaphore_unsubscribe(timeline, notify, &notices[leaver]), 1);
    for (const uint64_t now : {2, 3, 7, 9}) {
      EXPECT_OK(signal(timeline, now));
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(notices[i].calls, i != leaver && values[i] <= now ? 1 : 0) << values[i] << " at " << now;
    }
  }
}

TEST_P(SemaphoreTest, Unsubscribes) {
  Semaphore timeline = semaphore();
  Notice kept, taken;
  subscribe(timeline, 1, kept);
  subscribe(timeline, 1, taken);
  EXPECT_EQ(table_.semaphore_unsubscribe(timeline, notify, &taken), 1);
  EXPECT_EQ(table_.semaphore_unsubscribe(timeline, notify, &taken), 0);
  EXPECT_OK(signal(timeline, 1));
  EXPECT_EQ(kept.calls, 1);
  EXPECT_EQ(taken.calls, 0);
  EXPECT_EQ(table_.semaphore_unsubscribe(timeline, notify, &kept), 0) << "it was called";
}

TEST_P(SemaphoreTest, SubscribersMaySignalSubscribeAndSubmit) {
  struct Chain {
    SemaphoreTest* test;
    Semaphore from, to;
    Completion completion;
    Notice notice;
  };
  Chain chain = {this, semaphore(), semaphore(), {}, {}};
  const halyard_subscriber_fn forward = [](void* user, halyard_status_t) {
    auto& c = *static_cast<Chain*>(user);
    EXPECT_OK(c.test->signal(c.to, 1));
    c.test->subscribe(c.from, 1, c.notice);
    EXPECT_OK(c.test->submit(barrier_operation(), {{c.from, 1}}, {{c.to, 2}}, c.completion));
  };
  EXPECT_OK(DriverTest::subscribe(chain.from, 1, forward, &chain));
  EXPECT_OK(signal(chain.from, 1));
  EXPECT_TRUE(is_done(chain.completion));
  EXPECT_EQ(value(chain.to), 2u);
  EXPECT_EQ(chain.notice.calls, 1);
}

// Every subscription is either called or removed, never both, whichever thread is first.
TEST_P(SemaphoreTest, UnsubscribeRacesWithSignal) {
  for (int round = 0; round < 300; ++round) {
    Semaphore timeline = semaphore();
    Notice notice;
    subscribe(timeline, 1, notice);
    std::thread signaller([&] { EXPECT_OK(signal(timeline, 1)); });
    const int taken = table_.semaphore_unsubscribe(timeline, notify, &notice);
    signaller.join();
    EXPECT_EQ(taken + notice.calls, 1);
    destroy(timeline);
  }
}

// Threads begin and end waits while other threads signal.
TEST_P(SemaphoreTest, ManyThreads) {
  const auto [timeline, never] = semaphores<2>();
  on_threads(5, [&](size_t i) {
    for (uint64_t step = 1; step <= 100; ++step) {
      if (i == 4) {
        EXPECT_OK(signal(timeline, step));
        continue;
      }
      EXPECT_OK(wait({{timeline, step}, {never, 1}}, true, HALYARD_WAIT_FOREVER));
      if (i == 0) {
        EXPECT_CODE(DEADLINE_EXCEEDED, wait(never, 1, 1));
      }
    }
  });
}

}  // namespace
}  // namespace halyard::local_tests
