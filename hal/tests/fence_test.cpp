// Fences: queries and waits, with one driver and with several.
#include "hal/queue/fence.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "hal/queue/queue.h"
#include "hal/queue/wait.h"
#include "hal_test.h"

namespace halyard::hal {
namespace {

class FenceTest : public FakeDriverTest {
 protected:
  static Ref<Fence> make_fence(const Ref<Device>& device = open_fake_device()) {
    return hal::make_fence(device);
  }
  static Ref<Fence> join(std::initializer_list<Fence*> fences) {
    return Fence::join(std::vector(fences)).value();
  }
  static Status wait(std::initializer_list<Fence*> fences, uint32_t milliseconds) {
    return await(std::vector(fences), milliseconds);
  }
};

using SemaphoreTest = FakeDriverTest;

TEST_F(SemaphoreTest, GrowsAndFails) {
  const Ref<Semaphore> semaphore = Semaphore::create(open_fake_device(), 5).value();
  EXPECT_EQ(semaphore->query().value(), 5u);
  EXPECT_OK(semaphore->signal(9));
  EXPECT_EQ(semaphore->query().value(), 9u);
  EXPECT_FAILS(INVALID_ARGUMENT, "found 9", semaphore->signal(9));
  EXPECT_FAILS(INVALID_ARGUMENT, "found 3", semaphore->signal(3));
  semaphore->fail(Status(Code::DATA_LOSS, "first"));
  semaphore->fail(Status(Code::ABORTED, "second"));
  EXPECT_FAILS(DATA_LOSS, "first", semaphore->query());
  EXPECT_OK(semaphore->signal(10));
  EXPECT_FAILS(DATA_LOSS, "first", semaphore->query());
}

TEST_F(FenceTest, StartsUnreachedAndIsSignalledOnce) {
  const Ref<Fence> fence = make_fence();
  ASSERT_EQ(fence->timepoints().size(), 1u);
  EXPECT_EQ(fence->timepoints()[0].value, 1u);
  EXPECT_EQ(fence->query().code(), Code::DEFERRED);
  EXPECT_OK(fence->signal());
  EXPECT_OK(fence->query());
  EXPECT_FAILS(INVALID_ARGUMENT, "found 1", fence->signal());
  EXPECT_OK(fence->query());
}

TEST_F(FenceTest, KeepsItsFirstFailureEvenWhenReached) {
  const Ref<Fence> fence = make_fence();
  EXPECT_OK(fence->signal());
  fence->fail(Status(Code::NOT_FOUND, "first"));
  fence->fail(Status(Code::ABORTED, "second"));
  EXPECT_FAILS(NOT_FOUND, "first", fence->query());
  EXPECT_OK(fence->signal());
  EXPECT_FAILS(NOT_FOUND, "first", fence->query());
}

TEST_F(FenceTest, FailuresTakePrecedence) {
  const auto [unreached, failed] = make_fences<2>(open_fake_device());
  failed->fail(Status(Code::UNAVAILABLE, "gone"));
  const Ref<Fence> both = join({unreached.get(), failed.get()});
  EXPECT_FAILS(UNAVAILABLE, "gone", both->query());
  EXPECT_FAILS(UNAVAILABLE, "gone", wait({both.get()}, kWaitForever));
  EXPECT_FAILS(UNAVAILABLE, "gone", wait({unreached.get(), failed.get()}, kWaitForever));
}

TEST_F(FenceTest, NoFenceIsReached) { EXPECT_OK(wait({nullptr}, kWaitForever)); }

TEST_F(FenceTest, JoinKeepsTheLargestValueOfEachSemaphore) {
  const Ref<Semaphore> a = Semaphore::create(open_fake_device(), 0).value();
  const Ref<Semaphore> b = Semaphore::create(open_fake_device(), 0).value();
  Timepoints early;
  early.push_back({a, 2});
  Timepoints late;
  late.push_back({b, 1});
  late.push_back({a, 7});
  const Ref<Fence> low = Fence::of(std::move(early)).value();
  const Ref<Fence> high = Fence::of(std::move(late)).value();
  const Ref<Fence> joined = join({low.get(), nullptr, high.get(), low.get()});
  ASSERT_EQ(joined->timepoints().size(), 2u);
  EXPECT_EQ(joined->timepoints()[0].semaphore, a);
  EXPECT_EQ(joined->timepoints()[0].value, 7u);
  EXPECT_EQ(joined->timepoints()[1].semaphore, b);
  EXPECT_EQ(joined->timepoints()[1].value, 1u);
}

// So many that they are no longer searched one by one.
TEST_F(FenceTest, JoinOfManyFencesKeepsTheLargestValueOfEachSemaphore) {
  constexpr size_t kCount = 100;
  std::vector<Ref<Semaphore>> semaphores;
  std::vector<Ref<Fence>> fences;
  for (size_t i = 0; i < kCount; ++i) semaphores.push_back(Semaphore::create(open_fake_device(), 0).value());
  for (const uint64_t value : {3, 9, 5}) {
    for (const Ref<Semaphore>& semaphore : semaphores) {
      Timepoints one;
      one.push_back({semaphore, value});
      fences.push_back(Fence::of(std::move(one)).value());
    }
  }
  std::vector<Fence*> all;
  for (const Ref<Fence>& fence : fences) all.push_back(fence.get());
  const Ref<Fence> joined = Fence::join(all).value();
  ASSERT_EQ(joined->timepoints().size(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(joined->timepoints()[i].semaphore, semaphores[i]) << i;
    EXPECT_EQ(joined->timepoints()[i].value, 9u) << i;
  }
}

TEST_F(FenceTest, JoinOfNothingIsNull) {
  EXPECT_FALSE(join({}));
  EXPECT_FALSE(join({nullptr, nullptr}));
}

TEST_F(FenceTest, SignalReachesTheRestOfAJoinThatIsPartlyReached) {
  const auto [first, second] = make_fences<2>(open_fake_device());
  EXPECT_OK(first->signal());
  EXPECT_FAILS(INVALID_ARGUMENT, "larger than the semaphore's", join({first.get(), second.get()})->signal());
  EXPECT_OK(second->query());
}

TEST_F(FenceTest, AwaitPolls) {
  const Ref<Fence> fence = make_fence();
  EXPECT_FAILS(DEADLINE_EXCEEDED, "value 1 of semaphore", wait({fence.get()}, 0));
  EXPECT_OK(fence->signal());
  EXPECT_OK(wait({fence.get()}, 0));
}

TEST_F(FenceTest, AwaitStopsAtItsDeadline) {
  const Ref<Fence> fence = make_fence();
  EXPECT_FAILS(DEADLINE_EXCEEDED, "within 1 ms", wait({fence.get()}, 1));
}

TEST_F(FenceTest, FailureWithTheCodeOfATimeoutIsNoTimeout) {
  const Ref<Fence> fence = make_fence();
  fence->fail(Status(Code::DEADLINE_EXCEEDED, "too late"));
  EXPECT_FAILS(DEADLINE_EXCEEDED, "too late", wait({fence.get()}, 0));
  EXPECT_FAILS(DEADLINE_EXCEEDED, "too late", wait({fence.get()}, 1));
}

TEST_F(FenceTest, AwaitSeesWhatAnotherThreadSignals) {
  const Ref<Fence> fence = make_fence(open_fake_device("queued"));
  std::jthread signaller([&] { EXPECT_OK(fence->signal()); });
  EXPECT_OK(wait({fence.get()}, kWaitForever));
}

TEST_F(FenceTest, AwaitEndsAtAFailureDuringTheWait) {
  const Ref<Fence> failing = make_fence(open_fake_device("queued"));
  const Ref<Fence> unreached = make_fence(open_fake_device("queued"));
  std::jthread failer([&] { failing->fail(Status(Code::DATA_LOSS, "lost")); });
  EXPECT_FAILS(DATA_LOSS, "lost", wait({unreached.get(), failing.get()}, kWaitForever));
}

TEST_F(FenceTest, AwaitWithoutAnyoneToSignalIsAborted) {
  if (HALYARD_SANITIZER_KIND == 2u) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
  if (std::getenv("HALYARD_EMULATED")) GTEST_SKIP() << "qemu has a thread of its own";
  const Ref<Fence> fence = make_fence();
  EXPECT_FAILS(ABORTED, "waiting without limit for value 1 of semaphore", wait({fence.get()}, kWaitForever));
  EXPECT_EQ(fence->query().code(), Code::DEFERRED);
}

TEST_F(FenceTest, AwaitAcrossDriversWaitsForAll) {
  const Ref<Fence> here = make_fence(open_fake_device("queued"));
  const Ref<Fence> there = make_fence(open_fake_device(open_fake_library(), "queued"));
  const Ref<Fence> both = join({here.get(), there.get()});
  EXPECT_FAILS(DEADLINE_EXCEEDED, "within 1 ms", wait({both.get()}, 1));
  EXPECT_OK(here->signal());
  EXPECT_FAILS(DEADLINE_EXCEEDED, "within 1 ms", wait({both.get()}, 1));
  std::jthread signaller([&] { EXPECT_OK(there->signal()); });
  EXPECT_OK(wait({both.get()}, kWaitForever));
}

// A waiting thread runs pending work.
TEST_F(FenceTest, WaitingThreadsRunPendingWork) {
  const Ref<Device> helped = open_fake_device("helped");
  const Ref<Device> queued = open_fake_device("queued");  // it cannot use the waiting thread
  const Ref<Fence> first = make_fence(helped), second = make_fence(helped), other = make_fence(queued);
  EXPECT_OK(queue_barrier({*helped, kAnyQueue, nullptr, first.get()}));
  Fence* const all[] = {nullptr, first.get(), other.get()};
  EXPECT_EQ(run_pending_work(all), false);
  EXPECT_OK(first->query());
  EXPECT_EQ(other->query().code(), Code::DEFERRED);
  EXPECT_EQ(run_pending_work(all), false);  // no work is left
  other->fail(Status(Code::DATA_LOSS, "lost"));
  EXPECT_OK(queue_barrier({*helped, kAnyQueue, nullptr, second.get()}));
  Fence* const failed[] = {other.get(), second.get()};
  EXPECT_FAILS(DATA_LOSS, "lost", run_pending_work(failed));  // the waiter is notified at once
  EXPECT_EQ(second->query().code(), Code::DEFERRED);
  EXPECT_EQ(run_pending_work({}), true);
  fake().run_ready();
}

// Several drivers have no common wait that could run the work.
TEST_F(FenceTest, AwaitAcrossDriversRunsPendingWork) {
  const Ref<Device> device = open_fake_device("helped");
  const Ref<Fence> here = make_fence(device);
  const Ref<Fence> there = make_fence(open_fake_device(open_fake_library(), "queued"));
  EXPECT_OK(queue_barrier({*device, kAnyQueue, nullptr, here.get()}));
  std::jthread signaller([&] { EXPECT_OK(there->signal()); });
  EXPECT_OK(wait({here.get(), there.get()}, kWaitForever));
}

TEST_F(FenceTest, AwaitAcrossDriversEndsAtTheFirstFailure) {
  const Ref<Fence> here = make_fence(open_fake_device("queued"));
  const Ref<Fence> there = make_fence(open_fake_device(open_fake_library(), "queued"));
  std::jthread failer([&] { there->fail(Status(Code::DEADLINE_EXCEEDED, "their deadline")); });
  EXPECT_FAILS(DEADLINE_EXCEEDED, "their deadline", wait({here.get(), there.get()}, kWaitForever));
}

TEST_F(FenceTest, ManyThreadsAwaitAcrossDrivers) {
  const Ref<Fence> here = make_fence(open_fake_device("queued"));
  const Ref<Fence> there = make_fence(open_fake_device(open_fake_library(), "queued"));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { EXPECT_OK(wait({here.get(), there.get()}, kWaitForever)); });
  EXPECT_OK(here->signal());
  EXPECT_OK(there->signal());
}

}  // namespace
}  // namespace halyard::hal
