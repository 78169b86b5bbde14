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

TEST_F(Settle, WaitsForTheReport) {
  work_.in_flight = 1;
  std::thread driver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    tracer_->span_on(tracer_->add_track("queue"), TraceCategory::device, "late", 1, 2);
    work_.in_flight = 0;
  });
  size_t seen = 0;
  tracer_->observe([&](const TracedSlice& slice) { seen += slice.name == "late"; });
  tracer_->settle();
  tracer_->observe({});
  EXPECT_EQ(seen, 1u);
  driver.join();
}

TEST_F(Settle, DoesNotWaitForEver) {
  work_.in_flight = 1;
  const Clock::time_point begin = Clock::now();
  EXPECT_TRUE(tracer_->finish());
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(990));
}

}  // namespace
}  // namespace halyard::hal
