// The event loop: which thread runs posted steps; alarms.
#include "base/loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/c_boundary.h"

namespace halyard {
namespace {

using namespace std::chrono_literals;
using Clock = Loop::Clock;

// Long enough for the slowest machine; only failing tests wait that long.
constexpr auto kLong = 60s;

class Event {
 public:
  void happen() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool await(int count = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return count_ >= count; });
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

struct Posted : Step {
  explicit Posted(std::function<void()> what) : action(std::move(what)) {
    run = [](Step& self) noexcept { static_cast<Posted&>(self).action(); };
  }
  std::function<void()> action;
};

TEST(LoopTest, RunsStepsInOrderOnItsThread) {
  const Ref<Loop> loop = Loop::create();
  std::vector<int> order;
  std::thread::id thread;
  Event done;
  Posted first([&] { order.push_back(1); });
  Posted second([&] {
    order.push_back(2);
    thread = std::this_thread::get_id();
    done.happen();
  });
  loop->post(first);
  loop->post(second);
  ASSERT_TRUE(done.await());
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(LoopTest, DrainWaitsForWhatWasPosted) {
  const Ref<Loop> loop = Loop::create();
  std::atomic<int> ran = 0;
  Posted slow([&] {
    std::this_thread::sleep_for(20ms);
    ++ran;
  });
  Posted next([&] { ++ran; });
  loop->post(slow);
  loop->post(next);
  loop->drain();
  EXPECT_EQ(ran, 2);
}

TEST(LoopTest, DrainOfAStepDoesNotWaitForItself) {
  const Ref<Loop> loop = Loop::create();
  Event done;
  Posted step([&] {
    loop->drain();
    done.happen();
  });
  loop->post(step);
  EXPECT_TRUE(done.await());
}

TEST(LoopTest, GoesWithItsLastStep) {
  Event done;
  Ref<Loop> loop = Loop::create();
  Event given;
  Posted step([&] {
    given.await();
    loop = nullptr;  // on the loop's own thread
    done.happen();
  });
  loop->post(step);
  given.happen();
  EXPECT_TRUE(done.await());
}

TEST(LoopTest, RunsWhatStepsPostWhileItGoes) {
  int ran = 0;
  Event begun;
  Posted again([] {});
  {
    const Ref<Loop> loop = Loop::create();
    Loop* const there = loop.get();
    again.action = [&, there] {
      begun.happen();
      std::this_thread::sleep_for(1ms);
      if (++ran < 20) there->post(again);
    };
    loop->post(again);
    ASSERT_TRUE(begun.await());
  }
  EXPECT_EQ(ran, 20);
}

TEST(LoopTest, RunsWhatIsLeftWhenItGoes) {
  bool ran = false;
  Posted step([&] { ran = true; });
  {
    const Ref<Loop> loop = Loop::run_by_embedder();
    loop->post(step);
  }
  EXPECT_TRUE(ran);
}

TEST(LoopTest, ItsThreadTakesNoSignals) {
  const Ref<Loop> loop = Loop::create();
  sigset_t before, blocked, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Event done;
  Posted step([&] {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    done.happen();
  });
  loop->post(step);
  ASSERT_TRUE(done.await());
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    EXPECT_EQ(::sigismember(&blocked, signal), 1);
    EXPECT_EQ(::sigismember(&after, signal), ::sigismember(&before, signal));
  }
}

// ---- Run by the embedder ----

TEST(LoopTest, AnEmbedderRunsIt) {
  const Ref<Loop> loop = Loop::run_by_embedder();
  std::thread::id thread;
  Posted step([&] { thread = std::this_thread::get_id(); });
  EXPECT_EQ(loop->run(Clock::now()), 0u);
  loop->post(step);
  EXPECT_EQ(loop->run(Clock::now() + kLong), 1u);
  EXPECT_EQ(thread, std::this_thread::get_id());
  EXPECT_EQ(loop->run(Clock::now() + 1ms), 0u);
}

TEST(LoopTest, RunWaitsForWhatIsPostedLater) {
  const Ref<Loop> loop = Loop::run_by_embedder();
  Posted step([] {});
  std::thread poster([&] {
    std::this_thread::sleep_for(5ms);
    loop->post(step);
  });
  EXPECT_EQ(loop->run(Clock::time_point::max()), 1u);
  poster.join();
}

TEST(LoopTest, RunCanBeInterrupted) {
  const Ref<Loop> loop = Loop::run_by_embedder();
  std::atomic<bool> over = false;
  std::thread runner([&] {
    loop->run(Clock::time_point::max());
    over = true;
  });
  while (!over) {
    loop->interrupt_run();
    std::this_thread::sleep_for(1ms);
  }
  runner.join();
  Posted step([] {});
  loop->post(step);
  EXPECT_EQ(loop->run(Clock::now() + kLong), 1u);  // afterwards as before
}

TEST(LoopTest, OnTheEmbeddersContext) {
  boost::asio::io_context context;
  const Ref<Loop> loop = Loop::on(context);
  EXPECT_EQ(&loop->context(), &context);
  bool ran = false;
  Posted step([&] { ran = true; });
  loop->post(step);
  EXPECT_FALSE(ran);
  context.run();
  EXPECT_TRUE(ran);
}

// ---- After fork() ----

// The loop's thread is the parent's, and so may be its locks: a child neither waits nor runs steps, and is
// told so.
TEST(LoopTest, AChildProcessDoesNotWaitForTheParentsThread) {
  Ref<Loop> loop = Loop::create();
  Event ran;
  Posted first([&] { ran.happen(); });
  loop->post(first);
  ASSERT_TRUE(ran.await());
  auto alarm = std::make_unique<Alarm>(loop, [] {});
  alarm->set(Clock::now() + kLong * 60);
  const auto child = [&] {
    Posted never([] { std::exit(2); });
    loop->post(never);
    loop->drain();
    loop->interrupt_run();
    alarm->clear();
    alarm.reset();
    const Status status = outcome_of([&]() -> Result<> {
      loop->run(Clock::now());
      return {};
    });
    const bool is_told = status.code() == Code::FAILED_PRECONDITION &&
                         status.message().find("create an instance in this process") != std::string::npos;
    const Status of_context = outcome_of([&]() -> Result<> {
      static_cast<void>(loop->context());
      return {};
    });
    loop = nullptr;
    std::exit(is_told && of_context.code() == Code::FAILED_PRECONDITION ? 0 : 3);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

// ---- Steps that post steps ----

TEST(LoopTest, DrainingRunsStepsThatStepsHavePosted) {
  const Ref<Loop> loop = Loop::run_by_embedder();
  int ran = 0;
  Posted second([&] { ++ran; });
  Posted first([&] {
    ++ran;
    loop->post(second);
    loop->drain();  // within a step: does not wait for itself
  });
  loop->post(first);
  loop->drain();
  EXPECT_EQ(ran, 2);
}

TEST(LoopTest, DrainingWaitsForAStepOfAnotherThreadAndForTheStepThatItPosts) {
  for (int turn = 0; turn < 20; ++turn) {
    const Ref<Loop> loop = Loop::create();
    std::atomic<int> ran = 0;
    Event begun;
    Posted second([&] { ++ran; });
    Posted first([&] {
      begun.happen();
      std::this_thread::sleep_for(1ms);
      loop->post(second);
      ++ran;
    });
    loop->post(first);
    ASSERT_TRUE(begun.await());
    loop->drain();
    EXPECT_EQ(ran, 2);
  }
}

// ---- Alarms ----

TEST(AlarmTest, RingsOnce) {
  Event rung;
  Alarm alarm(Loop::create(), [&] { rung.happen(); });
  alarm.set(Clock::now() + 1ms);
  ASSERT_TRUE(rung.await());
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(rung.count(), 1);
  alarm.set(Clock::now());
  EXPECT_TRUE(rung.await(2));
}

TEST(AlarmTest, AClearedAlarmDoesNotRing) {
  const Ref<Loop> loop = Loop::run_by_embedder();
  int rung = 0;
  Alarm alarm(loop, [&] { ++rung; });
  alarm.set(Clock::now() + 1ms);
  alarm.clear();
  EXPECT_EQ(loop->run(Clock::now() + kLong), 1u);  // its timer expires without effect
  EXPECT_EQ(rung, 0);
}

TEST(AlarmTest, MovedToALaterTime) {
  const Ref<Loop> loop = Loop::run_by_embedder();
  Clock::time_point rung;
  Alarm alarm(loop, [&] { rung = Clock::now(); });
  const auto later = Clock::now() + 30ms;
  alarm.set(Clock::now() + 1ms);
  alarm.set(later);
  while (rung == Clock::time_point()) ASSERT_NE(loop->run(Clock::now() + kLong), 0u);
  EXPECT_GE(rung, later);
}

TEST(AlarmTest, MovedToAnEarlierTime) {
  Event rung;
  Alarm alarm(Loop::create(), [&] { rung.happen(); });
  alarm.set(Clock::now() + kLong * 60);
  alarm.set(Clock::now() + 1ms);
  EXPECT_TRUE(rung.await());
}

TEST(AlarmTest, SettingItAgainAndAgainDoesNotWakeTheLoop) {
  const Ref<Loop> loop = Loop::run_by_embedder();
  int rung = 0;
  Alarm alarm(loop, [&] { ++rung; });
  for (int i = 0; i < 1000; ++i) {
    alarm.set(Clock::now() + kLong);
    alarm.clear();
  }
  EXPECT_EQ(loop->run(Clock::now()), 0u);
  EXPECT_EQ(rung, 0);
}

TEST(AlarmTest, DoesNotRingAfterItHasGone) {
  const Ref<Loop> loop = Loop::create();
  for (int i = 0; i < 200; ++i) {
    auto there = std::make_unique<std::atomic<bool>>(true);
    {
      Alarm alarm(loop, [&] { EXPECT_TRUE(there->load()); });
      alarm.set(Clock::now() + std::chrono::microseconds(i));
      std::this_thread::sleep_for(std::chrono::microseconds(i / 2));
    }
    *there = false;
  }
}

}  // namespace
}  // namespace halyard
