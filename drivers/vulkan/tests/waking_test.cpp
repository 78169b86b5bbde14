// How often the threads of queues wake up, and which threads a slow subscriber delays. In some tests, the
// device is replaced by one that completes work on demand of the test.
#include <condition_variable>

#include "halyard/driver/trace.hpp"
#include "harness.h"

namespace halyard::vulkan_tests {

namespace {

using namespace std::chrono_literals;

// How often the threads of queues have gone to sleep so far.
uint64_t sleeps() {
  uint64_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm") >> std::ws, name);
    if (name != "halyard-queue") continue;
    std::ifstream status(thread.path() / "status");
    for (std::string word; status >> word;)
      if (word == "voluntary_ctxt_switches:") {
        uint64_t switches = 0;
        status >> switches;
        count += switches;
      }
  }
  return count;
}

class WakingTest : public VulkanTest {
 public:
  // Replaces the device by one that completes a submission when the test sets its number.
  void replace_device() {
    done_ = 0;
    done_by_waiting_ = false;
    functions().QueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo*, VkFence) { return VK_SUCCESS; };
    functions().GetSemaphoreCounterValue = [](VkDevice, VkSemaphore, uint64_t* value) {
      const std::lock_guard lock(mutex_);
      *value = done_;
      return VK_SUCCESS;
    };
    functions().WaitSemaphores = [](VkDevice, const VkSemaphoreWaitInfo* info, uint64_t) {
      std::unique_lock lock(mutex_);
      if (done_by_waiting_) done_ = std::max(done_, info->pValues[0]);
      changed_.wait(lock, [&] { return done_ >= info->pValues[0]; });
      return VK_SUCCESS;
    };
  }
  static void set_done(uint64_t number) {
    const std::lock_guard lock(mutex_);
    done_ = number;
    changed_.notify_all();
  }
  // Work that the device completes when the test sets its number.
  halyard_operation_t work() {
    if (!list_) list_ = finish(Recording().fill(range(allocate(64), 0, 64), 7, 4));
    return execute_operation(list_);
  }

  List list_ = nullptr;
  inline static std::mutex mutex_;
  inline static std::condition_variable changed_;
  inline static uint64_t done_ = 0;
  inline static bool done_by_waiting_ = false;  // the waiting thread completes the work
};

TEST_F(WakingTest, ThreadsOfIdleQueuesSleep) {
  EXPECT_OK(run(work()));
  std::this_thread::sleep_for(50ms);
  uint64_t count = UINT64_MAX;
  for (int turn = 0; turn < 10 && count > 0; ++turn) {  // on a busy machine the timer may expire late
    const uint64_t before = sleeps();
    std::this_thread::sleep_for(300ms);
    count = sleeps() - before;
  }
  EXPECT_EQ(count, 0u);
}

TEST_F(WakingTest, ThreadsSleepUntilWorkIsDone) {
  replace_device();
  for (const bool subscribed : {false, true}) {
    Semaphore done = semaphore();
    std::atomic<int> calls = 0;
    if (subscribed) {
      EXPECT_OK(subscribe(
          done, 1, [](void* user, halyard_status_t) { ++*static_cast<std::atomic<int>*>(user); }, &calls));
    }
    const uint64_t before = sleeps();
    Completion completion;
    EXPECT_OK(submit(work(), {}, {{done, 1}}, completion));
    std::this_thread::sleep_for(300ms);
    EXPECT_EQ(completion.calls, 0);
    EXPECT_LE(sleeps() - before, 6u);
    set_done(subscribed ? 2 : 1);
    EXPECT_TRUE(is_done(completion)) << "nobody waits for it";
    while (subscribed && calls == 0) std::this_thread::yield();
  }
}

TEST_F(WakingTest, ThreadsSleepIfProgramsWait) {
  replace_device();
  done_by_waiting_ = true;
  Semaphore chain = semaphore();
  uint64_t value = 0;
  uint64_t late = 0;  // the program itself was interrupted for so long that the thread may have woken
  const uint64_t before = sleeps();
  const uint64_t begin = kit::trace_time();
  for (uint64_t last = begin; last < begin + 300'000'000 || value <= 100;) {
    Completion completion;
    ++value;
    ASSERT_TRUE(submit(work(), {}, {{chain, value}}, completion).ok());
    ASSERT_TRUE(wait(chain, value).ok());
    ASSERT_TRUE(is_done(completion));
    const uint64_t now = kit::trace_time();
    late += now - last > 500'000;
    last = now;
  }
  EXPECT_LE(sleeps() - before, 4 * late + 6) << value << " submissions";
}

// A subscriber that blocks until the test lets it return.
struct Slow {
  std::atomic<bool> entered = false;
  std::atomic<bool> may_leave = false;
  std::atomic<bool> has_left = false;
  static void call(void* user, halyard_status_t) {
    auto* self = static_cast<Slow*>(user);
    self->entered = true;
    while (!self->may_leave) std::this_thread::sleep_for(100us);
    self->has_left = true;
  }
};

TEST_F(WakingTest, SlowSubscribersHoldUpNeitherWaitsNorWork) {
  for (const char* const inline_completion : {"1", "0"}) {
    list_ = nullptr;
    reopen({{"cache", ""}, {"inline_completion", inline_completion}});
    Slow slow;
    Semaphore first = semaphore();
    EXPECT_OK(subscribe(first, 1, Slow::call, &slow));
    Completion completions[8];
    EXPECT_OK(submit(work(), {}, {{first, 1}}, completions[0]));
    EXPECT_OK(wait(first, 1));  // would not return if it called the subscriber
    while (!slow.entered) std::this_thread::yield();
    for (uint64_t value = 2; value <= 8; ++value) {
      EXPECT_OK(submit(work(), {{first, value - 1}}, {{first, value}}, completions[value - 1]));
      if (value % 2 == 0) {
        EXPECT_OK(wait(first, value));
      }
    }
    for (const Completion& completion : completions) EXPECT_TRUE(is_done(completion));
    EXPECT_FALSE(slow.has_left);
    slow.may_leave = true;
    while (!slow.has_left) std::this_thread::yield();
  }
}

}  // namespace

}  // namespace halyard::vulkan_tests
