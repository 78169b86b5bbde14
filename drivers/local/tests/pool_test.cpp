// Memory in queue order: reuse, release and statistics of a warm device, and the failures that a validating
// device finds. The time at which bytes exist: queue_test.cpp.
#include <algorithm>
#include <array>
#include <memory>

#include "allocation_count.h"
#include "harness.h"

namespace halyard::local_tests {
namespace {

// With one worker, so that the number of tasks in progress is deterministic.
class PoolTest : public LocalTest {
 public:
  PoolTest() : LocalTest(GetParam(), "1") {}

  Outcome free_in_order(Memory memory) {
    Outcome result = run(dealloca_operation(memory));
    destroy(memory);
    return result;
  }
  Memory allocate_in_order(uint64_t size) {
    Completion completion;
    Memory memory = queue_allocate(size, {}, {}, completion);
    EXPECT_OK(outcome(completion));
    return memory;
  }
};
HALYARD_ON_EVERY_DEVICE(PoolTest);

// alloca, fill, dealloca and memory_free, like in a warm program. Only the driver can allocate here.
class Cycle {
 public:
  Cycle(LocalTest& test, uint64_t size, bool held)
      : test_(test), size_(size), held_(held), timeline_(test.semaphore()) {}
  ~Cycle() { EXPECT_EQ(failures_, 0); }

  void run() {
    const uint64_t start = value_ + held_;  // if held, the host makes all of it ready at the end
    Memory memory = nullptr;
    halyard_memory_info_t info = {.struct_size = sizeof info};
    const halyard_memory_request_t wanted = test_.request(size_);
    halyard_operation_t work = operation(HALYARD_OPERATION_ALLOCA);
    work.alloca_ = {&wanted, &memory, &info};
    submit(work, start);
    submit(fill_operation(range(memory, 0, size_), 7, 1), start + 1);
    submit(dealloca_operation(memory), start + 2);
    if (held_) failures_ += test_.table_.semaphore_signal(timeline_, start) != nullptr;
    value_ = start + 3;
    completed_ += 3;
    while (done_ != completed_) std::this_thread::yield();
    test_.table_.memory_free(test_.device_, memory);
  }

  // More tasks than run() has, even if the last one of the previous run has not been freed yet.
  void warm_up() {
    constexpr int kPieces = 8;
    const uint64_t start = value_ + 1;
    for (int i = 0; i < kPieces; ++i) submit(operation(HALYARD_OPERATION_BARRIER), start);
    failures_ += test_.table_.semaphore_signal(timeline_, start) != nullptr;
    value_ = start + 1;
    completed_ += kPieces;
    while (done_ != completed_) std::this_thread::yield();
    run();
  }

 private:
  using Memory = LocalTest::Memory;

  static void completed(void* user, halyard_status_t status) {
    auto& cycle = *static_cast<Cycle*>(user);
    cycle.failures_ += status != nullptr;
    ++cycle.done_;
  }

  void submit(const halyard_operation_t& operation, uint64_t after) {
    const halyard_timepoint_t waits[] = {{timeline_, after}};
    const halyard_timepoint_t signals[] = {{timeline_, after + 1}};
    const halyard_submission_t submission = {.struct_size = sizeof submission,
                                             .wait_count = 1,
                                             .signal_count = 1,
                                             .affinity = 1,
                                             .waits = waits,
                                             .signals = signals,
                                             .operation = &operation,
                                             .completed = completed,
                                             .completed_user = this};
    failures_ += test_.table_.queue_submit(test_.device_, &submission) != nullptr;
  }

  LocalTest& test_;
  const uint64_t size_;
  const bool held_;
  LocalTest::Semaphore timeline_;
  uint64_t value_ = 0;
  int completed_ = 0;
  std::atomic<int> done_ = 0;
  std::atomic<int> failures_ = 0;
};

TEST_P(PoolTest, WarmCyclesDoNotReachTheSystemsAllocator) {
  if (!driver_tests::kCountsAllocations) GTEST_SKIP() << "a sanitizer's allocator is not counted";
  for (const bool held : {false, true}) {
    Cycle small(*this, 100, held), large(*this, 5 << 20, held);
    small.warm_up();
    large.warm_up();
    const int64_t before = driver_tests::allocation_count().made;
    for (int repetition = 0; repetition < 100; ++repetition) {
      small.run();
      large.run();
    }
    EXPECT_EQ(driver_tests::allocation_count().made, before) << (held ? "held" : "ready at once");
  }
}

TEST_P(PoolTest, TrimReleasesAllMemory) {
  if (!driver_tests::kCountsAllocations) GTEST_SKIP() << "a sanitizer's allocator is not counted";
  for (const char* validate : {"0", "1"}) {
    reopen({{"validate", validate}});
    Cycle cycle(*this, 1000, true);
    cycle.run();
    EXPECT_OK(host_.take(table_.device_trim(device_)));
    const int64_t before = driver_tests::allocation_count().live;
    cycle.run();
    memories_.reserve(40);  // so that only the driver allocates from here on
    for (size_t i = 0; i < 40; ++i) allocate(uint64_t{1} << i % 20);
    for (Memory memory : std::exchange(memories_, {})) table_.memory_free(device_, memory);
    EXPECT_GT(driver_tests::allocation_count().live, before) << "kept for reuse";
    EXPECT_OK(host_.take(table_.device_trim(device_)));
    EXPECT_EQ(driver_tests::allocation_count().live, before) << "validate=" << validate;
  }
}

TEST_P(PoolTest, BytesAreReusedAfterTheHandleIsFreed) {
  Memory first = allocate_in_order(10000);
  uint8_t* const there = bytes(first);
  EXPECT_OK(run(dealloca_operation(first)));
  Memory second = allocate_in_order(10000);
  EXPECT_NE(bytes(second), there) << "somebody may still read the first";
  destroy(first);
  EXPECT_EQ(bytes(allocate_in_order(9900)), there);
}

TEST_P(PoolTest, QueueMemoryIsCounted) {
  Memory first = allocate_in_order(100);
  Memory second = allocate_in_order(1000);
  EXPECT_OK(free_in_order(first));
  Memory third = allocate_in_order(10);
  halyard_memory_statistics_t counted = statistics();
  EXPECT_EQ(counted.device_bytes_live, 1010u);
  EXPECT_EQ(counted.device_bytes_peak, 1100u);
  EXPECT_EQ(counted.device_bytes_allocated, 1110u);
  EXPECT_EQ(counted.device_bytes_freed, 100u);
  EXPECT_EQ(counted.host_bytes_allocated, 0u);
  EXPECT_OK(host_.take(table_.device_trim(device_)));
  EXPECT_EQ(statistics().device_bytes_live, 1010u) << "what is kept for reuse does not count";
  EXPECT_OK(free_in_order(second));
  EXPECT_OK(free_in_order(third));
  counted = statistics();
  EXPECT_EQ(counted.device_bytes_live, 0u);
  EXPECT_EQ(counted.device_bytes_freed, counted.device_bytes_allocated);
}

// ---- Validating devices

class ValidatingTest : public PoolTest {
 public:
  ValidatingTest() { reopen({{"validate", "1"}}); }
};
HALYARD_ON_EVERY_DEVICE(ValidatingTest);

TEST_P(ValidatingTest, UseAfterDeallocaIsReported) {
  Memory memory = allocate_in_order(64);
  Memory other = allocate(64);
  EXPECT_OK(run(fill_operation(range(memory, 0, 64), 1, 1)));
  EXPECT_OK(run(dealloca_operation(memory)));

  const Recording recording = Recording().copy(slot(0, 0, 64), range(other, 0, 64));
  for (const Outcome& failed :
       {run(fill_operation(range(memory, 0, 64), 2, 1)),
        run(copy_operation(range(memory, 0, 64), range(other, 0, 64))),
        run(copy_operation(range(other, 0, 64), range(memory, 0, 64))),
        run(execute_operation(finish(recording, 1), {{memory, 0, 64}})), run(dealloca_operation(memory))}) {
    EXPECT_FAILS(FAILED_PRECONDITION, "after its dealloca", failed);
  }
  void* pointer = nullptr;
  EXPECT_CODE(FAILED_PRECONDITION, map(memory, &pointer));
  EXPECT_EQ(pointer, nullptr);
}

TEST_P(ValidatingTest, UseBeforeAllocaIsReported) {
  Semaphore start = semaphore();
  Completion made;
  Memory memory = queue_allocate(64, {{start, 1}}, {}, made);
  for (const Outcome& failed :
       {run(fill_operation(range(memory, 0, 64), 2, 1)), run(dealloca_operation(memory))}) {
    EXPECT_FAILS(FAILED_PRECONDITION, "before its alloca", failed);
  }
  EXPECT_OK(signal(start, 1));
  EXPECT_OK(outcome(made));
  EXPECT_OK(run(fill_operation(range(memory, 0, 64), 2, 1)));
}

TEST_P(ValidatingTest, ADeallocaWithAFailedWaitKeepsTheBytes) {
  Memory memory = allocate_in_order(8);
  EXPECT_OK(run(fill_operation(range(memory, 0, 8), 5, 1)));
  Semaphore failed = semaphore();
  fail(failed, Code::ABORTED);
  Completion gone;
  EXPECT_OK(submit(dealloca_operation(memory), {{failed, 1}}, {}, gone));
  EXPECT_CODE(ABORTED, outcome(gone));
  EXPECT_EQ(content<uint8_t>(memory, 8), std::vector<uint8_t>(8, 5));
}

TEST_P(ValidatingTest, OtherMemoryHasNoDealloca) {
  Memory memory = allocate(8);
  EXPECT_OK(run(dealloca_operation(memory)));
  EXPECT_OK(run(fill_operation(range(memory, 0, 8), 5, 1)));
  EXPECT_EQ(content<uint8_t>(memory, 8), std::vector<uint8_t>(8, 5));
}

TEST_P(ValidatingTest, BytesHoldAPatternBeforeAndAfterTheirLife) {
  Memory memory = allocate_in_order(1000);
  const uint8_t* const there = bytes(memory);
  EXPECT_EQ(std::count(there, there + 1000, 0xC5), 1000) << "new";
  EXPECT_OK(run(fill_operation(range(memory, 0, 1000), 1, 1)));
  EXPECT_OK(run(dealloca_operation(memory)));
  EXPECT_EQ(std::count(there, there + 1000, 0xDD), 1000) << "after the dealloca";
  Memory other = allocate(50);
  EXPECT_EQ(content<uint8_t>(other, 50), std::vector<uint8_t>(50, 0xC5)) << "not of a queue allocation";
}

// Many more bytes than the cache of a size class holds.
TEST_P(ValidatingTest, NewBytesAreElsewhere) {
  std::vector<uint8_t*> places;
  for (int i = 0; i < 200; ++i) {
    Memory memory = allocate_in_order(4096);
    places.push_back(bytes(memory));
    EXPECT_OK(free_in_order(memory));
    EXPECT_EQ(std::count(places[0], places[0] + 4096, 0xDD), 4096) << "nobody else uses the first";
  }
  std::ranges::sort(places);
  EXPECT_EQ(std::ranges::adjacent_find(places), places.end());
}

// More bytes than the quarantine holds: no bytes leak, and the rest of the device's memory stays usable.
TEST_P(ValidatingTest, TheQuarantineHasALimit) {
  for (int i = 0; i < 12; ++i) EXPECT_OK(free_in_order(allocate_in_order(uint64_t{20} << 20)));
  for (int i = 0; i < 100; ++i) EXPECT_OK(free_in_order(allocate_in_order(0)));
  EXPECT_EQ(statistics().device_bytes_live, 0u);
}

}  // namespace
}  // namespace halyard::local_tests
