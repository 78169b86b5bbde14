// Tests for devices with workers: the threads that run work, parallel work, and closing.
#include <chrono>
#include <filesystem>
#include <iterator>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "harness.h"

namespace halyard::local_tests {
namespace {

class TaskTest : public LocalTest {
 public:
  TaskTest() : LocalTest("local-task") {}

  // The thread that called `completed`.
  struct Witness : Completion {
    std::thread::id thread;
  };
  Outcome submit_seen(halyard_driver_device_t device, const Points& waits, const Points& signals,
                      Witness& witness, const halyard_operation_t& operation = barrier_operation()) {
    witness.host = &host_;
    const halyard_completed_fn seen = [](void* user, halyard_status_t status) {
      static_cast<Witness*>(user)->thread = std::this_thread::get_id();
      completed(static_cast<Completion*>(static_cast<Witness*>(user)), status);
    };
    return submit_to(device, operation, waits, signals, seen, &witness);
  }
  // Waits like the host: runs pending work first.
  Outcome help_and_wait(Semaphore semaphore, uint64_t value) {
    const halyard_timepoint_t point = {semaphore, value};
    const halyard_semaphore_wait_args_t args = {
        .struct_size = sizeof args, .timepoint_count = 1, .timepoints = &point};
    table_.device_help(device_, &args);
    return wait(semaphore, value);
  }
  const std::thread::id here_ = std::this_thread::get_id();
};

// Work that takes less time than waking a worker runs on the submitting thread; work that a signal makes
// ready, or that is submitted by other work, does not.
TEST_F(TaskTest, OnlyQuickWorkRunsInTheCaller) {
  const auto [start, failed] = semaphores<2>();
  Witness at_once, after_signal, after_failure, of_a_failed_wait;
  EXPECT_OK(submit_seen(device_, {}, {}, at_once));
  EXPECT_OK(submit_seen(device_, {{start, 1}}, {}, after_signal));
  EXPECT_OK(submit_seen(device_, {{failed, 1}}, {}, after_failure));
  EXPECT_OK(signal(start, 1));
  fail(failed, Code::ABORTED);
  EXPECT_OK(submit_seen(device_, {{failed, 1}}, {}, of_a_failed_wait));
  for (const Witness* witness : {&at_once, &after_signal, &after_failure, &of_a_failed_wait})
    ASSERT_TRUE(is_done(*witness));
  EXPECT_EQ(at_once.thread, here_);
  EXPECT_EQ(of_a_failed_wait.thread, here_);
  EXPECT_NE(after_signal.thread, here_);
  EXPECT_NE(after_failure.thread, here_);

  Memory memory = allocate(std::vector<uint32_t>((1 << 20) + 1));
  Witness large, small;
  const halyard_operation_t long_fill = fill_operation(range(memory, 0, 4 << 20), 7, 4);
  const halyard_operation_t short_fill = fill_operation(range(memory, 4 << 20, 4), 7, 4);
  EXPECT_OK(submit_seen(device_, {}, {}, large, long_fill));
  EXPECT_OK(submit_seen(device_, {}, {}, small, short_fill));
  ASSERT_TRUE(is_done(large));
  ASSERT_TRUE(is_done(small));
  EXPECT_NE(large.thread, here_);
  EXPECT_EQ(small.thread, here_);
  EXPECT_CODE(ABORTED, after_failure.outcome);
  EXPECT_CODE(ABORTED, of_a_failed_wait.outcome);
}

// Work of a device without workers runs on the worker that makes it ready. Work of a device with workers runs
// on a worker, even if the caller makes it ready.
TEST_F(TaskTest, ChainsAcrossKindsOfDevices) {
  halyard_driver_device_t sync = open("local-sync");
  halyard_driver_device_t other = open("local-task");
  Semaphore timeline = semaphore();
  Semaphore of_sync = nullptr;
  EXPECT_OK(host_.take(table_.semaphore_create(sync, 0, &of_sync)));
  Witness steps[6];
  const halyard_driver_device_t devices[6] = {sync, device_, sync, other, device_, sync};
  for (uint64_t i = 6; i >= 1; --i)
    EXPECT_OK(submit_seen(devices[i - 1], {{timeline, i}, {of_sync, i - 1}},
                          {{timeline, i + 1}, {of_sync, i}}, steps[i - 1]));
  EXPECT_OK(signal(timeline, 1));
  for (const Witness& step : steps) {
    ASSERT_TRUE(is_done(step));
    EXPECT_OK(step.outcome);
  }
  EXPECT_EQ(value(timeline), 7u);
  EXPECT_EQ(value(of_sync), 6u);
  EXPECT_EQ(steps[0].thread, here_) << "made ready here, and it runs in its caller";
  for (int i = 1; i < 6; ++i) EXPECT_NE(steps[i].thread, here_) << i;
  EXPECT_NE(steps[3].thread, steps[1].thread) << "another device's workers";

  // In the other direction: a failure passes through all of them.
  Semaphore broken = semaphore();
  Witness last[3];
  EXPECT_OK(submit_seen(sync, {{broken, 2}}, {{broken, 3}}, last[1]));
  EXPECT_OK(submit_seen(other, {{broken, 3}}, {{of_sync, 9}}, last[2]));
  EXPECT_OK(submit_seen(device_, {{broken, 1}}, {{broken, 2}}, last[0]));
  fail(broken, Code::DATA_LOSS, "lost");
  for (const Witness& step : last) {
    ASSERT_TRUE(is_done(step));
    EXPECT_CODE(DATA_LOSS, step.outcome);
  }
  EXPECT_CODE(DATA_LOSS, failure(of_sync));
  table_.semaphore_destroy(sync, of_sync);
  table_.device_close(other);
  table_.device_close(sync);
}

// Three tasks that only end when all three have started: they need three threads.
TEST_F(TaskTest, IndependentSubmissionsRunAtTheSameTime) {
  struct Meeting {
    Host* host;
    std::latch all{3};
    std::atomic<int> met = 0;
  } meeting{&host_};
  const halyard_completed_fn meet = [](void* user, halyard_status_t status) {
    auto& m = *static_cast<Meeting*>(user);
    EXPECT_OK(m.host->take(status));
    m.all.arrive_and_wait();
    ++m.met;
  };
  Semaphore start = semaphore();
  for (int i = 0; i < 3; ++i)
    EXPECT_OK(submit_to(device_, barrier_operation(), {{start, 1}}, {}, meet, &meeting));
  EXPECT_OK(signal(start, 1));
  EXPECT_TRUE(comes_true([&] { return meeting.met == 3; }));
}

// A slow subscriber does not delay other waiters of the same timeline.
TEST_F(TaskTest, SubscribersAndWorkDoNotWaitForASlowSubscriber) {
  struct Slow {
    Host* host;
    std::latch may_end{1};
    std::atomic<bool> ended = false;
  } slow{&host_};
  Semaphore timeline = semaphore();
  EXPECT_OK(subscribe(
      timeline, 2,
      [](void* user, halyard_status_t status) {
        auto& s = *static_cast<Slow*>(user);
        EXPECT_OK(s.host->take(status));
        s.may_end.wait();
        s.ended = true;
      },
      &slow));
  Completion first, second;
  EXPECT_OK(submit(barrier_operation(), {{timeline, 2}}, {{timeline, 3}}, second));
  EXPECT_OK(submit(barrier_operation(), {{timeline, 1}}, {{timeline, 2}}, first));
  EXPECT_OK(signal(timeline, 1));
  EXPECT_OK(help_and_wait(timeline, 3));
  EXPECT_TRUE(is_done(second));
  EXPECT_FALSE(slow.ended);
  slow.may_end.count_down();
  EXPECT_TRUE(comes_true([&] { return slow.ended.load(); }));
  EXPECT_TRUE(is_done(first));
}

// A waiting thread runs short work in place of a worker, so the work sometimes starts before a worker is
// awake.
TEST_F(TaskTest, WaitingThreadsRunWork) {
  Memory memory = allocate(std::vector<uint32_t>(1 << 18));
  const halyard_operation_t brief = fill_operation(range(memory, 0, 1 << 20), 7, 4);
  Semaphore timeline = semaphore();
  uint64_t value = 0;
  EXPECT_TRUE(comes_true([&] {
    Witness witness;
    EXPECT_OK(submit_seen(device_, {}, {{timeline, ++value}}, witness, brief));
    EXPECT_OK(help_and_wait(timeline, value));
    EXPECT_TRUE(is_done(witness));
    return witness.thread == here_;
  }));
  EXPECT_EQ(content<uint32_t>(memory, 1 << 18), std::vector<uint32_t>(1 << 18, 7));
}

// A waiting thread runs no long work, because it could not abandon it for a deadline or a cancelled call.
TEST_F(TaskTest, WaitingThreadsRunNoLongWork) {
  Memory memory = allocate(uint64_t{64} << 20);
  const halyard_operation_t work = fill_operation(range(memory, 0, uint64_t{64} << 20), 7, 4);
  Semaphore timeline = semaphore();
  for (uint64_t value = 1; value <= 20; ++value) {
    Witness witness;
    EXPECT_OK(submit_seen(device_, {}, {{timeline, value}}, witness, work));
    EXPECT_OK(help_and_wait(timeline, value));
    ASSERT_TRUE(is_done(witness));
    EXPECT_NE(witness.thread, here_);
  }
}

// More threads than workers wait for chains of work and run tasks of each other's chains.
TEST_F(TaskTest, ThreadsHelpEachOther) {
  constexpr size_t kThreads = 6, kPieces = 60;
  Memory memory = allocate(std::vector<uint32_t>(kThreads << 16));
  std::vector<Semaphore> timelines;
  for (size_t i = 0; i < kThreads; ++i) timelines.push_back(semaphore());
  std::vector<Completion> completions(kThreads * kPieces);
  on_threads(kThreads, [&](size_t i) {
    Semaphore own = timelines[i], other = timelines[(i + 1) % kThreads];
    for (uint64_t n = 0; n < kPieces; ++n) {
      EXPECT_OK(submit(fill_operation(range(memory, i << 18, 1 << 18), static_cast<uint32_t>(n + 1), 4),
                       {{other, n}}, {{own, n + 1}}, completions[i * kPieces + n]));
      EXPECT_OK(help_and_wait(own, n + 1));
    }
  });
  for (const Completion& completion : completions) EXPECT_OK(outcome(completion));
  EXPECT_EQ(content<uint32_t>(memory, kThreads << 16), std::vector<uint32_t>(kThreads << 16, kPieces));
}

// Closing waits for threads that have not finished, and finds no work left.
TEST_F(TaskTest, ClosingJoinsWorkersInTheMiddleOfTheirCallbacks) {
  for (int round = 0; round < 100; ++round) {
    halyard_driver_device_t device = open();
    Semaphore start = nullptr;
    EXPECT_OK(host_.take(table_.semaphore_create(device, 0, &start)));
    std::vector<Witness> pieces(8);
    std::set<std::thread::id> threads;
    for (Witness& piece : pieces) EXPECT_OK(submit_seen(device, {{start, 1}}, {}, piece));
    EXPECT_OK(signal(start, 1));
    for (const Witness& piece : pieces) {
      ASSERT_TRUE(is_done(piece));
      threads.insert(piece.thread);
    }
    EXPECT_LE(threads.size(), 3u) << "the requested number of workers";
    table_.semaphore_destroy(device, start);
    table_.device_close(device);
  }
}

// The thread that makes work ready may be slower than the work: the device closes meanwhile.
TEST_F(TaskTest, ClosesWhileTheSignallingThreadIsBusy) {
  for (int round = 0; round < 300; ++round) {
    halyard_driver_device_t device = open();
    Semaphore link = semaphore();
    Witness first, second;
    EXPECT_OK(submit_seen(device, {{link, 1}}, {}, second));
    EXPECT_OK(submit_seen(device_, {}, {{link, 1}}, first));
    ASSERT_TRUE(is_done(second));
    table_.device_close(device);
    ASSERT_TRUE(is_done(first));
    destroy(link);
  }
}

// A device that has run no work closes, and leaves none of its threads behind.
TEST_F(TaskTest, OpensAndClosesIdle) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  for (int round = 0; round < 50; ++round) table_.device_close(open());
  // The system forgets a thread some time after it was joined.
  for (int i = 0; i < 10000 && threads() != before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(threads(), before);
}

// Threads submit chains of small pieces, each of which runs once.
TEST_F(TaskTest, ManySmallSubmissionsFromManyThreads) {
  constexpr size_t kThreads = 4, kPieces = 400;
  Semaphore gate = semaphore();
  std::vector<Semaphore> timelines;
  for (size_t i = 0; i < kThreads; ++i) timelines.push_back(semaphore());
  Memory memory = zeros(kThreads);
  std::vector<Completion> completions(kThreads * kPieces);
  on_threads(kThreads, [&](size_t i) {
    if (i == 1) {
      EXPECT_OK(signal(gate, 1));
    }
    for (uint64_t n = 0; n < kPieces; ++n) {
      // The chains of even threads are held until the gate opens; the others are ready at once.
      Points waits = {{timelines[i], n}};
      if (i % 2 == 0) waits.push_back({gate, 1});
      EXPECT_OK(submit(fill_operation(range(memory, 4 * i, 4), static_cast<uint32_t>(n + 1), 4), waits,
                       {{timelines[i], n + 1}}, completions[i * kPieces + n]));
    }
  });
  for (const Completion& completion : completions) EXPECT_OK(outcome(completion));
  for (Semaphore timeline : timelines) EXPECT_EQ(value(timeline), kPieces);
  EXPECT_EQ(content<uint32_t>(memory, kThreads), std::vector<uint32_t>(kThreads, kPieces));
}

// Each `completed` submits the next piece. An endless chain must not starve other work.
TEST_F(TaskTest, EndlessChainsStarveNoOtherWork) {
  halyard_driver_device_t device = nullptr;
  ASSERT_OK(try_open("local-task", "", {{"workers", "1"}}, &device));
  struct Chain {
    TaskTest* test;
    halyard_driver_device_t device;
    Semaphore timeline;
    std::atomic<bool> stop = false, stopped = false;
    std::atomic<uint64_t> length = 0;

    void next() {
      const uint64_t now = ++length;
      EXPECT_OK(
          test->submit_to(device, barrier_operation(), {{timeline, now}}, {{timeline, now + 1}}, done, this));
    }
    static void done(void* user, halyard_status_t status) {
      auto& chain = *static_cast<Chain*>(user);
      EXPECT_OK(chain.test->host_.take(status));
      if (chain.stop) {
        chain.stopped = true;
      } else {
        chain.next();
      }
    }
  } chain = {this, device, nullptr};
  EXPECT_OK(host_.take(table_.semaphore_create(device, 1, &chain.timeline)));
  chain.next();
  Semaphore gate = semaphore();
  for (uint64_t i = 0; i < 20; ++i) {
    Witness other;  // work for the same worker
    EXPECT_OK(submit_seen(device, {{gate, i + 1}}, {}, other));
    EXPECT_OK(signal(gate, i + 1));
    ASSERT_TRUE(is_done(other));
  }
  chain.stop = true;
  EXPECT_TRUE(comes_true([&] { return chain.stopped.load(); }));
  table_.semaphore_destroy(device, chain.timeline);
  table_.device_close(device);
}

}  // namespace
}  // namespace halyard::local_tests
