// The trace of a device waits for the reports of work in flight, for a bounded time.
#include "hal/trace/device_trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace halyard::hal {
namespace {

using Clock = std::chrono::steady_clock;

class Settle : public testing::Test {
 protected:
  const Ref<Tracer> tracer_ = *Tracer::create("");
  MemoryLog log_;
  TracedWork work_;
  DeviceTrace trace_{tracer_, "test://", work_, log_};
};

// It waits for a second, in which a thread may get no processor on a busy machine.
TEST_F(Settle, WaitsForTheReport) {
  size_t seen = 0;
  for (int turn = 0; turn < 20 && seen == 0; ++turn) {
    work_.in_flight = 1;
    std::thread driver([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      tracer_->span_on(tracer_->add_track("queue"), TraceCategory::device, "late", 1, 2);
      work_.in_flight = 0;
    });
    tracer_->observe([&](const TracedSlice& slice) { seen += slice.name == "late"; });
    tracer_->settle();
    tracer_->observe({});
    driver.join();
  }
  EXPECT_EQ(seen, 1u);
}

TEST_F(Settle, DoesNotWaitForEver) {
  work_.in_flight = 1;
  const Clock::time_point begin = Clock::now();
  EXPECT_TRUE(tracer_->finish());
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(990));
}

}  // namespace
}  // namespace halyard::hal
