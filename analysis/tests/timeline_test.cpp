// Levels of memory, what is alive at the peak, and which steps come after which.
#include "analysis/timeline.h"

#include <gtest/gtest.h>

namespace halyard::analysis {
namespace {

class TimelineTest : public testing::Test {
 protected:
  uint32_t allocate(Expression size, bool in_place = false) {
    Allocation allocation;
    allocation.size = std::move(size);
    allocation.in_place = in_place;
    return timeline->allocate(std::move(allocation));
  }
  static Use use(uint32_t allocation, int64_t offset, int64_t length, bool writes) {
    Use made;
    made.allocation = allocation;
    made.offset = offset;
    made.length = length;
    made.reads = !writes;
    made.writes = writes;
    return made;
  }
  void step(std::vector<Use> uses) {
    Step made;
    made.uses = std::move(uses);
    timeline->add(std::move(made));
  }

  Symbols symbols;
  const std::shared_ptr<Timeline> timeline = std::make_shared<Timeline>(symbols);
};

TEST_F(TimelineTest, PeakIsTheHighestLevel) {
  const uint32_t first = allocate(100);
  timeline->free(first);
  timeline->free(first);  // no effect
  const uint32_t second = allocate(60);
  const uint32_t third = allocate(60);
  timeline->free(second);
  allocate(30);
  timeline->end_call({third});
  const std::vector<Peak> peaks = timeline->peaks();
  ASSERT_EQ(peaks.size(), 1u);
  EXPECT_EQ(peaks[0].level.total.constant(), 120);
  EXPECT_EQ(peaks[0].level.results.constant(), 60);
  EXPECT_EQ(peaks[0].level.transients.constant(), 60);
  EXPECT_EQ(peaks[0].alive, (std::vector<uint32_t>{second, third}));
}

TEST_F(TimelineTest, LevelsThatCannotBeCompared) {
  const Expression n = symbols.named("n", true);
  timeline->free(allocate(symbols.multiply(n, 4)));
  timeline->free(allocate(1000));
  timeline->free(allocate(500));  // below
  EXPECT_EQ(timeline->peaks().size(), 2u);
  allocate(symbols.add(symbols.multiply(n, 4), 1000));  // above both
  ASSERT_EQ(timeline->peaks().size(), 1u);
  EXPECT_EQ(symbols.text(timeline->peaks()[0].level.total), "4*n + 1000");
}

TEST_F(TimelineTest, BytesInPlaceTakeNoMemory) {
  const uint32_t constant = allocate(1 << 20, true);
  allocate(10);
  EXPECT_EQ(timeline->peaks()[0].level.total.constant(), 10);
  EXPECT_EQ(timeline->peaks()[0].alive.front(), constant);
}

TEST_F(TimelineTest, StateIsHeldAfterTheInitializer) {
  allocate(64);
  timeline->begin_call();
  timeline->free(allocate(16));
  timeline->end_call({});
  EXPECT_EQ(timeline->peaks()[0].level.state.constant(), 64);
  EXPECT_EQ(timeline->peaks()[0].level.total.constant(), 80);
}

TEST_F(TimelineTest, StepsComeAfterTheLastWriter) {
  const uint32_t arena = allocate(256);
  step({use(arena, 0, 64, true)});
  step({use(arena, 64, 64, true)});
  step({use(arena, 32, 64, false)});                            // of both
  step({use(arena, 0, 64, true)});                              // replaces the first
  step({use(arena, 0, 32, false), use(arena, 128, 64, true)});  // of the second writer of the range
  const std::vector<Step>& steps = timeline->steps();
  EXPECT_EQ(steps[2].after, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(steps[4].after, (std::vector<uint32_t>{3}));
}

// An arena whose bytes are used again: only the last writer of each byte counts.
TEST_F(TimelineTest, PartsOfRangesAreReplaced) {
  const uint32_t arena = allocate(256);
  step({use(arena, 0, 128, true)});
  step({use(arena, 32, 64, true)});
  step({use(arena, 32, 64, false)});
  step({use(arena, 0, 32, false)});
  step({use(arena, 96, 32, false)});
  step({use(arena, 0, 128, false)});
  const std::vector<Step>& steps = timeline->steps();
  EXPECT_EQ(steps[2].after, (std::vector<uint32_t>{1}));
  EXPECT_EQ(steps[3].after, (std::vector<uint32_t>{0}));
  EXPECT_EQ(steps[4].after, (std::vector<uint32_t>{0}));
  EXPECT_EQ(steps[5].after, (std::vector<uint32_t>{0, 1}));
}

TEST_F(TimelineTest, AssumedBindingsOfFreshMemoryAreWritten) {
  const uint32_t arena = allocate(256);
  Use assumed = use(arena, 0, 64, false);
  assumed.is_assumed = true;
  step({assumed});
  step({assumed});
  EXPECT_TRUE(timeline->steps()[0].uses[0].writes);
  EXPECT_FALSE(timeline->steps()[1].uses[0].writes);  // now it has contents
}

}  // namespace
}  // namespace halyard::analysis
