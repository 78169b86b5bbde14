// The log of a device's memory: the peak with its makers, and points over time.
#include "hal/trace/memory_log.h"

#include <gtest/gtest.h>

namespace halyard::hal {
namespace {

TEST(MemoryLog, PeakByMaker) {
  MemoryLog log;
  const uint64_t first = log.allocated(100, "a", 1);
  log.freed(first, 2);
  const uint64_t second = log.allocated(80, "b", 3);
  log.allocated(40, "c", 4);
  log.allocated(40, "c", 5);  // the peak
  log.freed(second, 6);
  log.freed(log.allocated(70, "d", 7), 8);
  const MemoryLog::Report report = log.report();
  EXPECT_EQ(report.peak_bytes, 160u);
  EXPECT_EQ(report.peak_time, 5u);
  ASSERT_EQ(report.alive.size(), 2u);
  EXPECT_EQ(report.alive[0].made_by, "b");
  EXPECT_EQ(report.alive[1].made_by, "c");
  EXPECT_EQ(report.alive[1].count, 2u);
  ASSERT_EQ(report.points.size(), 8u);
  EXPECT_EQ(report.points[4].bytes, 160u);
  EXPECT_EQ(report.points.back().bytes, 80u);
}

TEST(MemoryLog, UnknownNumbersHaveNoEffect) {
  MemoryLog log;
  log.freed(7, 1);
  log.freed(log.allocated(0, "nothing", 2), 3);
  EXPECT_EQ(log.report().peak_bytes, 0u);
}

// A program that runs for days keeps its peak, in bounded memory.
TEST(MemoryLog, ManyChanges) {
  MemoryLog log;
  constexpr uint64_t kRounds = 20 * MemoryLog::kMaxPoints;
  for (uint64_t i = 0; i < kRounds; ++i) {
    const uint64_t bytes = i == kRounds / 2 ? 1'000'000 : 1 + i % 7;
    log.freed(log.allocated(bytes, "maker " + std::to_string(i), 2 * i), 2 * i + 1);
  }
  const MemoryLog::Report report = log.report();
  EXPECT_EQ(report.peak_bytes, 1'000'000u);
  EXPECT_LE(report.points.size(), MemoryLog::kMaxPoints);
  uint64_t highest = 0;
  uint64_t before = 0;
  for (const MemoryLog::Point& point : report.points) {
    highest = std::max(highest, point.bytes);
    EXPECT_GE(point.time, before);
    before = point.time;
  }
  EXPECT_EQ(highest, 1'000'000u);
}

TEST(MemoryLog, MakersNest) {
  EXPECT_EQ(current_maker(), "the host");
  const MakerScope outer("outer");
  {
    const MakerScope inner("inner");
    EXPECT_EQ(current_maker(), "inner");
  }
  EXPECT_EQ(current_maker(), "outer");
}

}  // namespace
}  // namespace halyard::hal
