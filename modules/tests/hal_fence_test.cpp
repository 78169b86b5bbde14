// hal.fence.* in all versions, and fences in queue work.
#include <gtest/gtest.h>

#include "modules/hal_functions.h"
#include "testing.h"

namespace halyard::modules {
namespace {

constexpr int kReached = 0;
constexpr int kTimeout = 4;

class HalFence : public HalTest {
 protected:
  Ref<hal::Fence> fence() { return hal->object<hal::Fence>("fence.create", "0rI_r", {device, 0}); }
  int64_t query(const Ref<hal::Fence>& fence) { return hal->number("fence.query", "0r_i", {fence}); }
  Status signal(const Ref<hal::Fence>& fence) { return hal->status("fence.signal", "0r_v", {fence}); }
  Status fail(const Ref<hal::Fence>& fence, int code) {
    return hal->status("fence.fail", "0ri_v", {fence, code});
  }
  Ref<hal::Fence> join(Entries fences) {
    return hal->object<hal::Fence>("fence.join", "0ICrD_r", {0, std::move(fences)});
  }
};

TEST_F(HalFence, BothFormsOfCreateGiveAnUnreachedFence) {
  for (const char* convention : {"0ri_r", "0rI_r"}) {
    const auto made = hal->object<hal::Fence>("fence.create", convention, {device, 0});
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(query(made), kNotReached);
    EXPECT_FAILS(INVALID_ARGUMENT, "null", hal->status("fence.create", convention, {nullptr, 0}));
  }
}

TEST_F(HalFence, SignalReachesItOnce) {
  const auto made = fence();
  EXPECT_TRUE(signal(made).ok());
  EXPECT_EQ(query(made), kReached);
  EXPECT_FAILS(INVALID_ARGUMENT, "larger than the semaphore's", signal(made));
  EXPECT_EQ(query(made), kReached);
  EXPECT_FAILS(INVALID_ARGUMENT, "null", signal(nullptr));
}

TEST_F(HalFence, FailGivesTheCodeToQueryAndAwait) {
  const auto made = fence();
  EXPECT_TRUE(fail(made, 10).ok());
  EXPECT_EQ(query(made), 10);
  EXPECT_EQ(query(made), 10) << "asking changes nothing";
  EXPECT_FAILS(ABORTED, "", hal->status("fence.await", "0iICrD_i", {-1, 0, Entries{made}}));
  EXPECT_TRUE(signal(made).ok()) << "no error and no effect on a failed fence";
  EXPECT_EQ(query(made), 10);
}

TEST_F(HalFence, TheFirstFailureStaysAlsoOnAReachedFence) {
  const auto made = fence();
  EXPECT_TRUE(signal(made).ok());
  EXPECT_TRUE(fail(made, 9).ok());
  EXPECT_TRUE(fail(made, 5).ok());
  EXPECT_EQ(query(made), 9);
}

// Ruling 11: a code that is not a failure becomes UNKNOWN, so that failed differs from not reached.
TEST_F(HalFence, FiveBitsOfACodeCountAndAllAreFailures) {
  const std::pair<int, int> kCases[] = {{1, 1},  {18, 18},    {0, 2},       {17, 2},      {19, 2}, {31, 2},
                                        {32, 2}, {32 + 5, 5}, {64 + 17, 2}, {-32 + 5, 5}, {-1, 2}};
  for (const auto& [code, expected] : kCases) {
    const auto made = fence();
    EXPECT_TRUE(fail(made, code).ok());
    EXPECT_EQ(query(made), expected) << "code " << code;
  }
}

TEST_F(HalFence, JoinIsReachedWhenAllAre) {
  const auto a = fence();
  const auto b = fence();
  const auto both = join({a, nullptr, b, a});
  EXPECT_EQ(query(both), kNotReached);
  EXPECT_TRUE(signal(a).ok());
  EXPECT_EQ(query(both), kNotReached);
  EXPECT_TRUE(signal(b).ok());
  EXPECT_EQ(query(both), kReached);
}

TEST_F(HalFence, JoinWithoutTimepointsIsNull) {
  EXPECT_EQ(join({}), nullptr);
  EXPECT_EQ(join({nullptr, nullptr}), nullptr);
  EXPECT_EQ(hal->object<hal::Fence>("fence.join", "0CrD_r", {Entries{nullptr}}), nullptr);
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a ", hal->status("fence.join", "0CrD_r", {Entries{device}}));
}

// Ruling 10.
TEST_F(HalFence, AFailureCountsBeforeWhatIsNotReached) {
  const auto a = fence();
  const auto b = fence();
  const auto both = join({a, b});
  EXPECT_TRUE(fail(b, 14).ok());
  EXPECT_EQ(query(both), 14);
  EXPECT_FAILS(UNAVAILABLE, "", hal->status("fence.await", "0iICrD_i", {-1, 0, Entries{a, b}}));
  EXPECT_FAILS(UNAVAILABLE, "", hal->status("fence.await", "0iICrD_i", {0, 0, Entries{a, b}}));
}

TEST_F(HalFence, AwaitInBothForms) {
  const auto made = fence();
  EXPECT_EQ(hal->number("fence.await", "0iCrD_i", {0, Entries{made}}), kTimeout);
  EXPECT_EQ(hal->number("fence.await", "0iICrD_i", {0, 0, Entries{made}}), kTimeout);
  EXPECT_EQ(hal->number("fence.await", "0iICrD_i", {1, 0, Entries{made}}), kTimeout);
  EXPECT_TRUE(signal(made).ok());
  EXPECT_EQ(hal->number("fence.await", "0iCrD_i", {-1, Entries{made}}), kReached);
  EXPECT_EQ(hal->number("fence.await", "0iICrD_i", {-1, 0, Entries{nullptr, made}}), kReached);
  EXPECT_EQ(hal->number("fence.await", "0iICrD_i", {-1, 0, Entries{}}), kReached);
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a ",
               hal->status("fence.await", "0iICrD_i", {0, 0, Entries{device}}));
}

TEST_F(HalFence, AFailureWithTheCodeOfATimeoutIsAFailure) {
  const auto made = fence();
  EXPECT_TRUE(fail(made, kTimeout).ok());
  EXPECT_FAILS(DEADLINE_EXCEEDED, "code 4", hal->status("fence.await", "0iICrD_i", {0, 0, Entries{made}}));
  EXPECT_FAILS(DEADLINE_EXCEEDED, "code 4", hal->status("fence.await", "0iICrD_i", {5, 0, Entries{made}}));
}

TEST_F(HalFence, AwaitTakes32Fences) {
  const auto made = fence();
  EXPECT_TRUE(signal(made).ok());
  EXPECT_EQ(hal->number("fence.await", "0iICrD_i", {-1, 0, Entries(32, made)}), kReached);
  for (const Argument& entry : {Argument(made), Argument(nullptr)})
    EXPECT_FAILS(OUT_OF_RANGE, "33", hal->status("fence.await", "0iICrD_i", {-1, 0, Entries(33, entry)}));
}

// Ruling 12. This process may have other threads, so only the timeout can be tested reliably.
TEST_F(HalFence, AwaitOfWhatNobodyReachesEndsAtTheDeadline) {
  EXPECT_EQ(hal->number("fence.await", "0iICrD_i", {10, 0, Entries{fence()}}), kTimeout);
}

TEST_F(HalFence, QueueWorkPassesFailuresOn) {
  const auto failed = fence();
  const auto middle = fence();
  const auto last = fence();
  EXPECT_TRUE(fail(failed, 15).ok());
  const auto barrier = [&](const Argument& wait, const Argument& signal) {
    return hal->status("device.queue.barrier", "0rIrrI_v", {device, kAny, wait, signal, 0});
  };
  EXPECT_FAILS(DATA_LOSS, "", barrier(failed, middle));
  EXPECT_FAILS(DATA_LOSS, "", barrier(middle, last));
  EXPECT_EQ(query(last), 15);
}

TEST_F(HalFence, WaitAndSignalFencesOfAnotherTypeCountAsNull) {
  EXPECT_TRUE(hal->status("device.queue.barrier", "0rIrrI_v", {device, kAny, device, device, 0}).ok());
}

// Ruling 9.
TEST_F(HalFence, AQueueSignalOfAReachedFenceIsNoError) {
  const auto made = fence();
  EXPECT_TRUE(signal(made).ok());
  EXPECT_TRUE(hal->status("device.queue.barrier", "0rIrrI_v", {device, kAny, nullptr, made, 0}).ok());
  EXPECT_EQ(query(made), kReached);
}

}  // namespace
}  // namespace halyard::modules
