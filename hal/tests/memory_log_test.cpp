// The log of a device's memory: the peak with its makers, and points over time.
#include "hal/trace/memory_log.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

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

// Operations of a queue whose ends the device reports late, on other threads. The numbers are values of one
// timeline.
class QueuedMemoryLog : public testing::Test {
 protected:
  QueuedMemory place(uint64_t wait, uint64_t signal) {
    return {{{&timeline_, wait}}, {{&timeline_, signal}}, [this, signal] { return timeline_ >= signal; }};
  }
  uint64_t peak() { return log_.report().peak_bytes; }

  uint64_t timeline_ = 0;
  MemoryLog log_;
};

TEST_F(QueuedMemoryLog, CountsWhileTheBytesExist) {
  const uint64_t number = log_.queue_alloca(100, "a", place(0, 1));
  log_.queue_dealloca(number, place(1, 2));
  EXPECT_EQ(peak(), 0u);
  log_.alloca_done(number, true, 5);
  EXPECT_EQ(peak(), 100u);
  log_.dealloca_done(number, true, 6);
  const auto points = log_.report().points;
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].time, 5u);
  EXPECT_EQ(points[1].time, 6u);
  EXPECT_EQ(points[1].bytes, 0u);
  EXPECT_EQ(log_.report().alive.size(), 1u);
  log_.freed(number, 7);
  EXPECT_EQ(log_.report().points.size(), 2u);
}

TEST_F(QueuedMemoryLog, ALateDeallocaIsNoPartOfAPeakAfterIt) {
  const uint64_t first = log_.queue_alloca(100, "a", place(0, 1));
  log_.queue_dealloca(first, place(1, 2));
  const uint64_t second = log_.queue_alloca(60, "b", place(2, 3));
  timeline_ = 3;
  log_.alloca_done(first, true, 5);
  log_.alloca_done(second, true, 6);  // has waited for the dealloca, whose report comes last
  log_.dealloca_done(first, true, 7);
  EXPECT_EQ(peak(), 100u);
  EXPECT_EQ(log_.report().points.back().bytes, 60u);
}

TEST_F(QueuedMemoryLog, ALateAllocaIsPartOfThePeakBeforeADealloca) {
  const uint64_t result = log_.queue_alloca(30, "r", place(0, 1));
  const uint64_t scratch = log_.queue_alloca(100, "s", place(1, 2));
  log_.queue_dealloca(scratch, place(2, 3));
  timeline_ = 3;
  log_.dealloca_done(scratch, true, 5);
  EXPECT_EQ(peak(), 130u);
  log_.alloca_done(scratch, true, 6);
  log_.alloca_done(result, true, 7);
  EXPECT_EQ(log_.report().points.back().bytes, 30u);
  EXPECT_EQ(log_.report().points.size(), 3u);
}

// The alloca was requested first, but has waited for the dealloca.
TEST_F(QueuedMemoryLog, TimelinesCountMoreThanRequests) {
  const uint64_t first = log_.queue_alloca(100, "a", place(0, 1));
  log_.alloca_done(first, true, 5);
  const uint64_t second = log_.queue_alloca(60, "b", place(2, 3));
  log_.queue_dealloca(first, place(1, 2));
  const uint64_t third = log_.queue_alloca(10, "c", place(3, 4));
  timeline_ = 4;
  log_.alloca_done(third, true, 6);
  EXPECT_EQ(peak(), 100u);
  EXPECT_EQ(log_.report().points.back().bytes, 70u);
  log_.dealloca_done(first, true, 7);
  log_.alloca_done(second, true, 8);
  EXPECT_EQ(log_.report().points.back().bytes, 70u);
}

// Each operation has a timeline of its own, and all have signalled before the first report, as on a remote
// device.
TEST_F(QueuedMemoryLog, AllReportsMayBeLate) {
  uint64_t timelines[5] = {};
  bool done = false;
  const auto place = [&](size_t wait, size_t signal) {
    QueuedMemory queued = {{}, {{&timelines[signal], 1}}, [&done] { return done; }};
    if (wait != 0) queued.waits.emplace_back(&timelines[wait], 1);
    return queued;
  };
  for (const bool in_order : {true, false}) {
    done = false;
    MemoryLog log;
    std::string told;
    log.observe([&](const MemoryLog::Change& change) {
      told += std::string(change.is_end ? "-" : "+") + std::string(change.maker);
    });
    const uint64_t first = log.queue_alloca(100, "a", place(0, 1));
    const uint64_t second = log.queue_alloca(60, "b", place(2, 3));  // waits for the dealloca of the first
    log.queue_dealloca(first, place(1, 2));
    log.queue_dealloca(second, place(3, 4));
    done = true;
    if (in_order) log.alloca_done(first, true, 5);
    log.dealloca_done(first, true, 6);
    if (in_order) log.alloca_done(second, true, 7);
    log.dealloca_done(second, true, 8);
    log.alloca_done(second, true, 9);
    log.alloca_done(first, true, 9);
    EXPECT_EQ(told, "+a-a+b-b") << in_order;
    EXPECT_EQ(log.report().peak_bytes, 100u);
  }
}

// Without a wait between them, operations count in the order of their requests.
TEST_F(QueuedMemoryLog, UnorderedOperationsAreInTheOrderOfTheirRequests) {
  const uint64_t result = log_.queue_alloca(30, "r", {{}, {}, [] { return true; }});
  const uint64_t scratch = log_.queue_alloca(100, "s", {{}, {}, [] { return true; }});
  log_.queue_dealloca(scratch, {{}, {}, [] { return true; }});
  log_.alloca_done(result, true, 5);
  EXPECT_EQ(peak(), 30u);
  log_.dealloca_done(scratch, true, 6);
  EXPECT_EQ(peak(), 130u);
}

TEST_F(QueuedMemoryLog, FailuresChangeNothing) {
  const uint64_t failed = log_.queue_alloca(100, "a", place(0, 1));
  log_.alloca_done(failed, false, 5);
  log_.freed(failed, 6);
  EXPECT_EQ(peak(), 0u);
  const uint64_t kept = log_.queue_alloca(10, "b", place(0, 2));
  log_.alloca_done(kept, true, 7);
  log_.queue_dealloca(kept, place(2, 3));
  log_.dealloca_done(kept, false, 8);
  EXPECT_EQ(log_.report().points.back().bytes, 10u);
  log_.freed(kept, 9);
  EXPECT_EQ(log_.report().points.back().bytes, 0u);
}

TEST_F(QueuedMemoryLog, ChangesAreToldInTheirOrder) {
  std::string told;
  log_.observe([&](const MemoryLog::Change& change) {
    told += std::string(change.is_end ? "-" : "+") + std::string(change.maker);
  });
  const uint64_t first = log_.queue_alloca(100, "a", place(0, 1));
  log_.queue_dealloca(first, place(1, 2));
  const uint64_t second = log_.queue_alloca(60, "b", place(2, 3));
  timeline_ = 3;
  log_.alloca_done(second, true, 6);
  log_.alloca_done(first, true, 7);
  log_.dealloca_done(first, true, 8);
  log_.freed(second, 9);
  EXPECT_EQ(told, "+a-a+b-b");
}

TEST(MemoryLog, ChangesOfSeveralThreadsAreToldInTheirOrder) {
  MemoryLog log;
  uint64_t live = 0;
  log.observe([&](const MemoryLog::Change& change) {
    live = change.is_end ? live - change.bytes : live + change.bytes;
    EXPECT_EQ(change.live, live);
  });
  std::vector<std::jthread> threads;
  for (uint64_t bytes = 1; bytes <= 4; ++bytes)
    threads.emplace_back([&log, bytes] {
      for (uint64_t i = 0; i < 2'000; ++i) log.freed(log.allocated(bytes, "a thread", i), i);
    });
  threads.clear();
  EXPECT_EQ(live, 0u);
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
