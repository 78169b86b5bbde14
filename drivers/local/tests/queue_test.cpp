// Queue work: order, held work, failures, alloca and dealloca, files.
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "harness.h"

namespace halyard::local_tests {
namespace {

class QueueTest : public LocalTest {
 public:
  using LocalTest::LocalTest;
};
HALYARD_ON_EVERY_DEVICE(QueueTest);

struct SyncQueueTest : QueueTest {
  SyncQueueTest() : QueueTest("local-sync") {}
};

TEST_P(QueueTest, ReadyWorkRuns) {
  Semaphore done = semaphore();
  Memory memory = allocate(std::vector<uint8_t>(4, 0));
  Completion completion;
  EXPECT_OK(submit(fill_operation(range(memory, 0, 4), 0x11, 1), {{done, 0}}, {{done, 3}}, completion));
  EXPECT_OK(outcome(completion));
  EXPECT_EQ(value(done), 3u);
  EXPECT_EQ(content<uint8_t>(memory, 4), std::vector<uint8_t>(4, 0x11));
}

TEST_P(QueueTest, SignalThatIsNotLargerHasNoEffect) {
  Semaphore done = semaphore(5);
  Completion completion;
  EXPECT_OK(submit(barrier_operation(), {}, {{done, 5}, {done, 2}}, completion));
  EXPECT_OK(outcome(completion));
  EXPECT_EQ(value(done), 5u);
}

TEST_P(QueueTest, HeldWorkRunsWhenTheLastWaitIsReached) {
  const auto [first, second, done] = semaphores<3>();
  Memory memory = allocate(std::vector<uint8_t>(4, 0));
  Completion completion;
  {
    // All borrowed data of the call is destroyed before the work is ready.
    auto points = std::make_unique<Points>(Points{{first, 2}, {second, 1}, {first, 1}});
    auto signals = std::make_unique<Points>(Points{{done, 1}});
    EXPECT_OK(submit(fill_operation(range(memory, 0, 4), 0x22, 1), *points, *signals, completion));
  }
  EXPECT_OK(signal(first, 1));
  EXPECT_OK(signal(second, 1));
  EXPECT_EQ(completion.calls, 0);
  EXPECT_EQ(value(done), 0u);
  EXPECT_EQ(content<uint8_t>(memory, 4), std::vector<uint8_t>(4, 0));
  EXPECT_OK(signal(first, 2));
  EXPECT_TRUE(is_done(completion));
  EXPECT_EQ(value(done), 1u);
  EXPECT_EQ(content<uint8_t>(memory, 4), std::vector<uint8_t>(4, 0x22));
}

TEST_P(QueueTest, HeldExecutionKeepsItsBindingTable) {
  Semaphore start = semaphore();
  Memory memory = allocate(std::vector<uint8_t>(8, 0));
  const Recording recording = Recording().fill(slot(1, 2, 2), 0x33, 1);
  List list = finish(recording, 2);
  Completion completion;
  {
    auto bindings = std::make_unique<std::vector<halyard_binding_t>>(2);
    (*bindings)[1] = {memory, 4, 4};
    EXPECT_OK(submit(execute_operation(list, *bindings), {{start, 1}}, {}, completion));
  }
  EXPECT_OK(signal(start, 1));
  EXPECT_TRUE(is_done(completion));
  EXPECT_EQ(content<uint8_t>(memory, 8), (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0x33, 0x33}));
}

TEST_P(QueueTest, LongChainsOfHeldWork) {
  constexpr uint64_t kLength = 50000;  // recursion this deep would overflow a stack
  Semaphore timeline = semaphore();
  std::vector<Completion> completions(kLength);
  for (uint64_t i = kLength; i >= 1; --i)
    EXPECT_OK(submit(barrier_operation(), {{timeline, i}}, {{timeline, i + 1}}, completions[i - 1]));
  EXPECT_OK(signal(timeline, 1));
  for (const Completion& completion : completions) ASSERT_TRUE(is_done(completion));
  EXPECT_EQ(value(timeline), kLength + 1);
}

TEST_P(QueueTest, FailedWaitSkipsTheWorkAndFailsTheSignals) {
  const auto [failed, never, done] = semaphores<3>();
  Semaphore also = semaphore(7);
  Memory memory = allocate(std::vector<uint8_t>(4, 0));
  fail(failed, Code::DATA_LOSS, "gone");
  Completion completion;
  EXPECT_OK(submit(fill_operation(range(memory, 0, 4), 1, 1), {{never, 1}, {failed, 0}},
                   {{done, 1}, {also, 1}}, completion));
  EXPECT_TRUE(is_done(completion)) << "a failure does not wait for the other waits";
  EXPECT_CODE(DATA_LOSS, outcome(completion));
  EXPECT_CODE(DATA_LOSS, failure(done));
  EXPECT_CODE(DATA_LOSS, failure(also));
  EXPECT_EQ(failure(done).message(), "gone");
  EXPECT_EQ(content<uint8_t>(memory, 4), std::vector<uint8_t>(4, 0));
}

TEST_P(QueueTest, FailurePassesThroughHeldChains) {
  const auto [start, never, middle, end] = semaphores<4>();
  Completion first, second, bystander;
  EXPECT_OK(submit(barrier_operation(), {{middle, 1}, {never, 1}}, {{end, 1}}, second));
  EXPECT_OK(submit(barrier_operation(), {{never, 1}, {start, 1}}, {{middle, 1}}, first));
  EXPECT_OK(submit(barrier_operation(), {{never, 1}}, {}, bystander));
  fail(start, Code::UNAUTHENTICATED, "who are you");
  EXPECT_TRUE(is_done(first));
  EXPECT_TRUE(is_done(second));
  EXPECT_CODE(UNAUTHENTICATED, outcome(first));
  EXPECT_CODE(UNAUTHENTICATED, outcome(second));
  EXPECT_EQ(failure(end).message(), "who are you");
  // The other timeline no longer refers to the failed work.
  EXPECT_EQ(bystander.calls, 0);
  EXPECT_OK(signal(never, 1));
  EXPECT_TRUE(is_done(bystander));
  EXPECT_EQ(first.calls + second.calls, 2);
}

TEST_P(QueueTest, FailedOperationFailsTheSignals) {
  Semaphore done = semaphore();
  Completion alloca_done, completion;
  Semaphore later = semaphore();
  Memory memory = queue_allocate(16, {{later, 1}}, {}, alloca_done);
  EXPECT_OK(submit(fill_operation(range(memory, 0, 16), 1, 1), {}, {{done, 1}}, completion))
      << "accepted; it fails as it runs";
  EXPECT_CODE(FAILED_PRECONDITION, outcome(completion));
  EXPECT_CODE(FAILED_PRECONDITION, failure(done));
  EXPECT_OK(signal(later, 1));
  EXPECT_OK(outcome(alloca_done));
}

TEST_P(QueueTest, UnknownOperationsAndExtensionsAreRefused) {
  Semaphore done = semaphore();
  Completion completion;
  EXPECT_CODE(UNIMPLEMENTED, submit(operation(40), {}, {{done, 1}}, completion));
  EXPECT_EQ(completion.calls, 0);
  EXPECT_EQ(value(done), 0u);

  const halyard_extension_t needed = {.struct_size = sizeof needed, .kind = 3, .must_understand = 1};
  const halyard_operation_t nothing = barrier_operation();
  const halyard_submission_t submission = {.struct_size = sizeof submission,
                                           .affinity = 1,
                                           .operation = &nothing,
                                           .completed = completed,
                                           .extensions = &needed};
  EXPECT_CODE(UNIMPLEMENTED, host_.take(table_.queue_submit(device_, &submission)));
}

TEST_P(QueueTest, SemaphoresOfOtherDevices) {
  halyard_driver_device_t other = open();
  Semaphore foreign = nullptr;
  EXPECT_OK(host_.take(table_.semaphore_create(other, 0, &foreign)));
  Completion completion;
  EXPECT_OK(submit(barrier_operation(), {{foreign, 1}}, {{foreign, 2}}, completion));
  EXPECT_OK(signal(foreign, 1));
  EXPECT_TRUE(is_done(completion));
  EXPECT_EQ(value(foreign), 2u);
  table_.semaphore_destroy(other, foreign);
  table_.device_close(other);
}

// Held work that a signal makes ready runs before a subscriber of the same value is called, so a subscriber
// that continues the program finds its results.
TEST_F(SyncQueueTest, SubscribersComeAfterWork) {
  struct Seen {
    QueueTest* test;
    Semaphore done;
    uint64_t value_when_called = 0;
  };
  Semaphore start = semaphore();
  Seen seen = {this, semaphore()};
  const halyard_subscriber_fn look = [](void* user, halyard_status_t) {
    auto& s = *static_cast<Seen*>(user);
    EXPECT_OK(s.test->wait(s.done, 1, 0));
    s.value_when_called = s.test->value(s.done);
  };
  EXPECT_OK(subscribe(start, 1, look, &seen));
  Completion first, second;
  EXPECT_OK(submit(barrier_operation(), {{start, 1}}, {{seen.done, 1}}, first));
  EXPECT_OK(submit(barrier_operation(), {{seen.done, 1}}, {{seen.done, 2}}, second));
  EXPECT_OK(signal(start, 1));
  EXPECT_EQ(seen.value_when_called, 2u);
}

// Objects that a submission named may be destroyed within `completed`.
TEST_P(QueueTest, CompletedMayDestroyTheObjectsOfTheSubmission) {
  struct Owned {
    QueueTest* test;
    Semaphore signal;
    Memory memory;
    std::atomic<bool> done = false;
  };
  const halyard_completed_fn destroy_all = [](void* user, halyard_status_t status) {
    auto& owned = *static_cast<Owned*>(user);
    EXPECT_OK(owned.test->host_.take(status));
    owned.test->destroy(owned.signal);
    owned.test->destroy(owned.memory);
    owned.done = true;
  };
  for (const bool held : {false, true}) {
    Semaphore start = semaphore(held ? 0 : 1);
    Owned owned = {this, semaphore(), allocate(8)};
    EXPECT_OK(submit_to(device_, fill_operation(range(owned.memory, 0, 8), 1, 1), {{start, 1}},
                        {{owned.signal, 1}}, destroy_all, &owned));
    if (held) {
      EXPECT_FALSE(owned.done);
      EXPECT_OK(signal(start, 1));
    }
    EXPECT_TRUE(comes_true([&] { return owned.done.load(); }));
  }
}

// Many threads hold work for each other. Each piece runs exactly once, in the order of its waits.
TEST_P(QueueTest, ManyThreadsSubmit) {
  constexpr size_t kThreads = 4, kSteps = 100;
  std::vector<Semaphore> timelines;
  for (size_t i = 0; i < kThreads; ++i) timelines.push_back(semaphore());
  Memory memory = zeros(kThreads);
  std::vector<Completion> completions(kThreads * kSteps);
  on_threads(kThreads, [&](size_t i) {
    Semaphore own = timelines[i], other = timelines[(i + 1) % kThreads];
    // Step n of a thread waits for step n-1 of this thread and of the next one.
    for (uint64_t step = 0; step < kSteps; ++step)
      EXPECT_OK(submit(fill_operation(range(memory, 4 * i, 4), static_cast<uint32_t>(step + 1), 4),
                       {{own, step}, {other, step}}, {{own, step + 1}}, completions[i * kSteps + step]));
  });
  for (Semaphore timeline : timelines) EXPECT_OK(wait(timeline, kSteps));
  for (const Completion& completion : completions) EXPECT_OK(outcome(completion));
  EXPECT_EQ(content<uint32_t>(memory, kThreads), std::vector<uint32_t>(kThreads, kSteps));
}

// A wait fails on one thread while another thread reaches the other waits. The work runs once, and the
// timelines release it.
TEST_P(QueueTest, FailureRacesWithSignal) {
  for (int round = 0; round < 300; ++round) {
    const auto [good, bad] = semaphores<2>();
    Completion completion;
    EXPECT_OK(submit(barrier_operation(), {{good, 1}, {bad, 1}, {good, 2}}, {}, completion));
    std::thread failing([&] { fail(bad, Code::ABORTED); });
    EXPECT_OK(signal(good, 2));
    failing.join();
    EXPECT_CODE(ABORTED, outcome(completion));
    destroy(good);
    destroy(bad);
  }
}

// ---- Alloca and dealloca

TEST_P(QueueTest, AllocaGivesMemory) {
  Semaphore done = semaphore();
  Completion completion;
  Memory memory = queue_allocate(100, {}, {{done, 1}}, completion);
  EXPECT_OK(outcome(completion));
  EXPECT_EQ(value(done), 1u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes(memory)) % 64, 0u);
  EXPECT_OK(run(fill_operation(range(memory, 0, 100), 5, 1)));
  EXPECT_EQ(statistics().device_bytes_live, 100u);
}

TEST_P(QueueTest, BytesExistFromAllocaUntilTheHandleIsFreed) {
  Semaphore timeline = semaphore();
  Completion made, filled, gone;
  Memory memory = queue_allocate(64, {{timeline, 1}}, {{timeline, 2}}, made);
  EXPECT_OK(submit(fill_operation(range(memory, 0, 64), 7, 1), {{timeline, 2}}, {{timeline, 3}}, filled));
  EXPECT_OK(submit(dealloca_operation(memory), {{timeline, 4}}, {{timeline, 5}}, gone));
  EXPECT_EQ(statistics().device_bytes_live, 0u);
  void* pointer = nullptr;
  EXPECT_CODE(FAILED_PRECONDITION, map(memory, &pointer));
  EXPECT_EQ(pointer, nullptr);

  EXPECT_OK(signal(timeline, 1));
  EXPECT_OK(outcome(made));
  EXPECT_OK(outcome(filled));
  EXPECT_EQ(value(timeline), 3u);
  EXPECT_EQ(content<uint8_t>(memory, 64), std::vector<uint8_t>(64, 7));
  EXPECT_EQ(statistics().device_bytes_live, 64u);

  EXPECT_OK(signal(timeline, 4));
  EXPECT_OK(outcome(gone));
  EXPECT_EQ(value(timeline), 5u);
  EXPECT_EQ(content<uint8_t>(memory, 64), std::vector<uint8_t>(64, 7))
      << "programs read results after their dealloca";
  EXPECT_OK(run(dealloca_operation(memory))) << "twice has no effect";
  destroy(memory);
  EXPECT_EQ(statistics().device_bytes_live, 0u);
}

TEST_P(QueueTest, DeallocaOfOtherMemoryHasNoEffect) {
  Memory memory = allocate(std::vector<uint8_t>{1, 2});
  EXPECT_OK(run(dealloca_operation(memory)));
  EXPECT_EQ(content<uint8_t>(memory, 2), (std::vector<uint8_t>{1, 2}));
}

TEST_P(QueueTest, AllocaAfterAFailedWaitGivesAHandleWithoutBytes) {
  Semaphore failed = semaphore();
  fail(failed, Code::CANCELLED);
  Completion completion;
  Memory memory = queue_allocate(64, {{failed, 1}}, {}, completion);
  EXPECT_CODE(CANCELLED, outcome(completion));
  void* pointer = nullptr;
  EXPECT_CODE(FAILED_PRECONDITION, map(memory, &pointer));
}

TEST_P(QueueTest, AllocaThatFindsNoMemoryLeftFailsItsSignals) {
  const halyard_device_properties_t properties = this->properties();
  allocate(64);
  Semaphore done = semaphore();
  Completion completion;
  Memory memory = queue_allocate(properties.maximum_allocation, {}, {{done, 1}}, completion);
  EXPECT_NE(memory, nullptr);
  EXPECT_CODE(RESOURCE_EXHAUSTED, outcome(completion));
  EXPECT_CODE(RESOURCE_EXHAUSTED, failure(done));
}

// Programs that use memory without waiting: the use succeeds or fails, and accesses no other memory.
TEST_P(QueueTest, UseRacesWithAllocaAndDealloca) {
  for (int round = 0; round < 200; ++round) {
    Semaphore start = semaphore();
    Completion made, gone;
    Memory memory = queue_allocate(256, {{start, 1}}, {{start, 2}}, made);
    EXPECT_OK(submit(dealloca_operation(memory), {{start, 2}}, {}, gone));
    std::thread user([&] {
      Completion used;
      EXPECT_OK(submit(fill_operation(range(memory, 0, 256), 1, 1), {}, {}, used));
      EXPECT_TRUE(outcome(used).ok() || outcome(used).code() == Code::FAILED_PRECONDITION)
          << outcome(used).text();
    });
    EXPECT_OK(signal(start, 1));
    EXPECT_TRUE(is_done(made));
    EXPECT_TRUE(is_done(gone));
    user.join();
    destroy(memory);
    destroy(start);
  }
  EXPECT_EQ(statistics().device_bytes_live, 0u);
}

// ---- Files

TEST_P(QueueTest, ReadsAndWritesFiles) {
  const int file = memfd_create("test", 0);
  ASSERT_GE(file, 0);
  std::vector<uint8_t> numbers(100);
  std::iota(numbers.begin(), numbers.end(), uint8_t{0});
  Memory source = allocate(numbers);
  EXPECT_OK(run(file_operation(HALYARD_OPERATION_WRITE, file, 10, range(source, 20, 50))));
  EXPECT_EQ(lseek(file, 0, SEEK_END), 60);
  Memory target = allocate(std::vector<uint8_t>(50, 0xFF));
  EXPECT_OK(run(file_operation(HALYARD_OPERATION_READ, file, 12, range(target, 1, 48))));
  const std::vector<uint8_t> result = content<uint8_t>(target, 50);
  EXPECT_EQ(result[0], 0xFF);
  EXPECT_EQ(result[1], 22);
  EXPECT_EQ(result[48], 69);
  EXPECT_EQ(result[49], 0xFF);

  EXPECT_CODE(OUT_OF_RANGE, run(file_operation(HALYARD_OPERATION_READ, file, 30, range(target, 0, 50))));
  EXPECT_CODE(OUT_OF_RANGE,
              run(file_operation(HALYARD_OPERATION_READ, file, UINT64_MAX, range(target, 0, 50))));
  close(file);
  EXPECT_CODE(UNAVAILABLE, run(file_operation(HALYARD_OPERATION_READ, file, 0, range(target, 0, 1))));
}

}  // namespace
}  // namespace halyard::local_tests
