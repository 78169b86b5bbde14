// Waiting for timepoints without a blocked thread: wake-ups, steps, and unreachable waits.
#include "hal/queue/wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "hal_test.h"

namespace halyard::hal {
namespace {

class WaitTest : public FakeDriverTest {
 protected:
  static Ref<Fence> make_fence() { return Fence::create(open_fake_device()).value(); }
  // A fence of another instance of the driver.
  static Ref<Fence> make_foreign_fence() {
    return Fence::create(open_fake_device(open_fake_library())).value();
  }
  static Ref<Fence> both(const Ref<Fence>& a, const Ref<Fence>& b) {
    return Fence::join(std::vector{a.get(), b.get()}).value();
  }
  Wakeup begin(uint32_t parts = 1) { return {wait_, wait_->begin(parts)}; }

  const Ref<Wait> wait_ = make<Wait>();
};

TEST_F(WaitTest, WakesWhenAllAreReached) {
  const Ref<Fence> here = make_fence(), there = make_foreign_fence();
  const Ref<Object> watched =
      watch(std::vector{here.get(), there.get(), static_cast<Fence*>(nullptr)}, begin()).value();
  EXPECT_TRUE(watched);
  EXPECT_OK(here->signal());
  EXPECT_TRUE(wait_->waiting());
  EXPECT_OK(there->signal());
  EXPECT_FALSE(wait_->waiting());
}

TEST_F(WaitTest, WakesOnceWhenOneFails) {
  const Ref<Fence> here = make_fence(), there = make_foreign_fence();
  const Ref<Object> watched = watch(std::vector{here.get(), there.get()}, begin(2)).value();
  there->fail(Status(Code::DATA_LOSS, "lost"));
  here->fail(Status(Code::ABORTED, "later"));
  EXPECT_TRUE(wait_->waiting()) << "one part of two";
  wait_->arrive();
  EXPECT_FALSE(wait_->waiting()) << "the other part was the failure";
}

TEST_F(WaitTest, WakesAtOnceWithoutOpenTimepoints) {
  const Ref<Fence> fence = make_fence();
  EXPECT_OK(fence->signal());
  EXPECT_FALSE(watch(std::vector{fence.get()}, begin()).value());
  EXPECT_FALSE(wait_->waiting());
  EXPECT_FALSE(watch({}, begin()).value());
  EXPECT_FALSE(wait_->waiting());
}

TEST_F(WaitTest, DroppedWaitsAreGivenUp) {
  const auto memory = make<Budget>(1 << 20);
  const Ref<Fence> here = make_fence(), there = make_foreign_fence();
  Ref<Object> watched = watch(std::vector{here.get(), there.get()}, begin(), memory.get()).value();
  EXPECT_GT(memory->used(), 0u);
  EXPECT_OK(here->signal());
  watched = {};
  EXPECT_EQ(memory->used(), 0u);
  EXPECT_OK(there->signal());
  EXPECT_TRUE(wait_->waiting());
}

TEST_F(WaitTest, RefusesWaitsBeyondTheBudget) {
  const auto memory = make<Budget>(1);
  const Ref<Fence> fence = make_fence();
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "a wait for fences",
               watch(std::vector{fence.get()}, begin(), memory.get()));
  EXPECT_OK(fence->signal());
  EXPECT_TRUE(wait_->waiting());
}

TEST_F(WaitTest, StepsGetTheFirstFailureAndAreRunOnce) {
  const Ref<Fence> here = make_fence(), there = make_foreign_fence();
  std::vector<std::string> outcomes;
  EXPECT_OK(when_reached(both(here, there).get(),
                         [&](const Status& status) { outcomes.push_back(status.text()); }));
  here->fail(Status(Code::DATA_LOSS, "lost"));
  there->fail(Status(Code::ABORTED, "later"));
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_NE(outcomes[0].find("lost"), std::string::npos) << outcomes[0];
}

TEST_F(WaitTest, StepsOfOneThreadRunOneAfterTheOther) {
  const Ref<Fence> first = make_fence(), second = make_foreign_fence();
  std::vector<std::string> order;
  EXPECT_OK(when_reached(second.get(), [&](const Status&) { order.emplace_back("second"); }));
  EXPECT_OK(when_reached(first.get(), [&](const Status&) {
    EXPECT_OK(second->signal());
    order.emplace_back("end of first");
  }));
  EXPECT_OK(first->signal());
  EXPECT_EQ(order, (std::vector<std::string>{"end of first", "second"}));
}

TEST_F(WaitTest, StepsWithoutTimepointsRunAtOnce) {
  bool is_run = false;
  EXPECT_OK(when_reached(nullptr, [&](const Status& status) { is_run = status.ok(); }));
  EXPECT_TRUE(is_run);
}

TEST_F(WaitTest, ExceptionsOfStepsAreIgnored) {
  const Ref<Fence> fence = make_fence();
  EXPECT_OK(when_reached(fence.get(), [](const Status&) { throw std::runtime_error("thrown"); }));
  EXPECT_OK(fence->signal());
  EXPECT_OK(when_reached(nullptr, [](const Status&) { throw std::runtime_error("thrown"); }));
}

// If no reference can signal a step's fence any more, the step is notified and destroyed.
TEST_F(WaitTest, UnreachableWaitsFail) {
  std::optional<Code> outcome;
  Ref<Fence> fence = make_fence();
  EXPECT_OK(when_reached(fence.get(), [&](const Status& status) { outcome = status.code(); }));
  fence = {};
  EXPECT_EQ(outcome, Code::ABORTED);
}

TEST_F(WaitTest, MayBeDroppedWhileItIsWoken) {
  const Ref<Device> home = open_fake_device();
  const Ref<Device> other = open_fake_device(open_fake_library());
  for (int i = 0; i < 200; ++i) {
    const Ref<Fence> here = Fence::create(home).value(), there = Fence::create(other).value();
    Ref<Object> watched = watch(std::vector{here.get(), there.get()}, begin()).value();
    std::thread signaller([&] { EXPECT_OK(here->signal()); });
    std::thread failer([&] { there->fail(Status(Code::DATA_LOSS, "lost")); });
    watched = {};
    signaller.join();
    failer.join();
    wait_->abandon();
  }
}

TEST_F(WaitTest, StepsRunOnceIfThreadsRace) {
  const Ref<Device> home = open_fake_device();
  const Ref<Device> other = open_fake_device(open_fake_library());
  for (int i = 0; i < 200; ++i) {
    const Ref<Fence> here = Fence::create(home).value(), there = Fence::create(other).value();
    std::atomic<int> runs = 0;
    EXPECT_OK(when_reached(both(here, there).get(), [&](const Status& status) { runs += status.ok(); }));
    std::thread first([&] { EXPECT_OK(here->signal()); });
    std::thread second([&] { EXPECT_OK(there->signal()); });
    first.join();
    second.join();
    EXPECT_EQ(runs, 1);
  }
}

}  // namespace
}  // namespace halyard::hal
