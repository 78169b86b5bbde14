// Charges for blocks of memory, and their effect on a budget.
#include "base/budget.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "base/node_pool.h"
#include "halyard/abi.h"

namespace halyard {
namespace {

TEST(BlockBytes, AreWhatTheLibraryTakes) {
#if defined(__GLIBC__)
  if (HALYARD_SANITIZER_KIND != 0) GTEST_SKIP() << "the sanitizer's own library gives other blocks";
  constexpr uint64_t kHeader = 8;
  for (uint64_t size = 1; size < 100000; size += 1 + size / 50) {
    void* const block = std::malloc(size);
    const uint64_t taken = malloc_usable_size(block) + kHeader;
    std::free(block);
    // A reused block may be a little larger than a new one.
    EXPECT_LE(block_bytes(size), taken) << size;
    EXPECT_GE(block_bytes(size) + 16, taken) << size;
  }
#endif
  EXPECT_EQ(block_bytes(0), 0u);
  EXPECT_EQ(block_bytes(1), 32u);
  EXPECT_EQ(block_bytes(24), 32u);
  EXPECT_EQ(block_bytes(25), 48u);
  EXPECT_EQ(block_bytes(1 << 20), (1u << 20) + 4096);
  EXPECT_EQ(block_bytes(UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(block_bytes(UINT64_MAX - 8192), (UINT64_MAX - 8192 + 16 + 4095) / 4096 * 4096);
}

TEST(BlockBytes, OfNodesHaveRoomForTheirAlignment) {
  // The node, its header, the alignment and the smallest block that is left over.
  EXPECT_EQ(NodePool::footprint(1), 80u + 64 + 32);
  EXPECT_EQ(NodePool::footprint(64), 80u + 64 + 32);
  EXPECT_EQ(NodePool::footprint(65), 144u + 64 + 32);
}

TEST(ChargeTest, TakesAndGivesBack) {
  const auto budget = make<Budget>(1000);
  {
    Charge charge = Charge::take(budget, 300, "a thing").value();
    EXPECT_EQ(budget->used(), 300u);
    EXPECT_TRUE(charge.grow_by(100, "a thing"));
    EXPECT_TRUE(charge.grow_to(350, "a thing"));  // it is larger
    EXPECT_EQ(charge.bytes(), 400u);
    charge.shrink_to(500);
    EXPECT_EQ(charge.bytes(), 400u);
    charge.shrink_to(50);
    EXPECT_EQ(budget->used(), 50u);
    const Charge moved = std::move(charge);
    EXPECT_EQ(moved.bytes(), 50u);
    EXPECT_EQ(budget->used(), 50u);
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(ChargeTest, AFailureNamesTheLimitAndChangesNothing) {
  const auto budget = make<Budget>(1000);
  const Charge other = Charge::take(budget, 600, "another thing").value();
  Charge charge;
  const Result<> begun = charge.start(budget.get(), 401, "a thing");
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), Code::RESOURCE_EXHAUSTED);
  for (const char* part : {"a thing", "401", "1000 bytes", "600", "max_memory"})
    EXPECT_NE(begun.error().message().find(part), std::string::npos) << begun.error().message();
  EXPECT_FALSE(charge.has_budget());
  ASSERT_TRUE(charge.start(budget.get(), 400, "a thing"));
  EXPECT_FALSE(charge.grow_by(1, "a thing"));
  EXPECT_FALSE(charge.grow_by(UINT64_MAX, "a thing"));
  EXPECT_EQ(charge.bytes(), 400u);
  EXPECT_EQ(budget->used(), 1000u);
}

TEST(ChargeTest, WithoutABudgetNothingIsCounted) {
  Charge charge;
  EXPECT_TRUE(charge.start(nullptr, UINT64_MAX, "a thing"));
  EXPECT_TRUE(charge.grow_by(UINT64_MAX, "a thing"));
  charge.shrink_to(0);
  EXPECT_EQ(charge.bytes(), 0u);
}

TEST(ChargeTest, KeepsItsBudget) {
  Charge charge;
  {
    const auto budget = make<Budget>(1000);
    ASSERT_TRUE(charge.start(budget.get(), 10, "a thing"));
  }
  EXPECT_TRUE(charge.grow_by(990, "a thing"));
  EXPECT_FALSE(charge.grow_by(1, "a thing"));
}

TEST(ChargeTest, FromManyThreads) {
  const auto budget = make<Budget>(10000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 10000; ++turn) {
        Charge charge;
        const bool started = charge.start(budget.get(), 3000, "a thing").has_value();
        EXPECT_LE(budget->used(), 10000u) << started;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget->used(), 0u);
}

TEST(ChargeTest, OfABudgetOfAnotherLibrary) {
  struct Theirs {
    uint64_t used = 0;
    bool refuses = false;
  } theirs;
  const Budget::Source source = {
      .user = &theirs,
      .take =
          [](void* user, uint64_t bytes) {
            auto* const budget = static_cast<Theirs*>(user);
            if (budget->refuses) return 0;
            budget->used += bytes;
            return 1;
          },
      .give_back = [](void* user, uint64_t bytes) { static_cast<Theirs*>(user)->used -= bytes; },
      .used = [](void* user) { return static_cast<Theirs*>(user)->used; },
  };
  const auto budget = make<Budget>(1000, source);
  {
    Charge charge = Charge::take(budget, 300, "a thing").value();
    EXPECT_EQ(theirs.used, 300u);
    EXPECT_EQ(budget->used(), 300u);
    charge.shrink_to(100);
    EXPECT_EQ(theirs.used, 100u);
    theirs.refuses = true;
    EXPECT_FALSE(charge.grow_by(1, "a thing"));
    EXPECT_EQ(charge.bytes(), 100u);
    charge.count(Budget::kType, 1);  // it counts no objects
  }
  EXPECT_EQ(theirs.used, 0u);
}

TEST(ChargeTest, AnAssignedChargeGivesBackItsOwn) {
  const auto first = make<Budget>(1000);
  const auto second = make<Budget>(1000);
  Charge charge = Charge::take(first, 300, "a thing").value();
  charge = Charge::take(second, 200, "a thing").value();
  EXPECT_EQ(first->used(), 0u);
  EXPECT_EQ(second->used(), 200u);
  EXPECT_FALSE(Charge::take(second, 801, "a thing"));
  EXPECT_EQ(second->used(), 200u);
}

TEST(SaturatingAdd, StopsAtTheLargestNumber) {
  EXPECT_EQ(saturating_add(UINT64_MAX - 1, 1), UINT64_MAX);
  EXPECT_EQ(saturating_add(UINT64_MAX, 1), UINT64_MAX);
  EXPECT_EQ(saturating_add(UINT64_MAX, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(saturating_add(1, 2), 3u);
}

TEST(ReserveCharged, AVectorWithoutMemoryIsNotCharged) {
  const auto budget = make<Budget>(Budget::kNoLimit);
  Charge charge(budget);
  std::vector<uint64_t> vector(3);
  EXPECT_THROW(static_cast<void>(reserve_charged(vector, SIZE_MAX / 16, charge, "a vector")), std::bad_alloc);
  EXPECT_EQ(budget->used(), 0u);
  EXPECT_EQ(vector.size(), 3u);
}

TEST(ReserveCharged, ChargesOldAndNewWhileElementsMove) {
  const auto budget = make<Budget>(block_bytes(4000) + block_bytes(8000));
  Charge charge(budget);
  std::vector<uint32_t> vector;
  ASSERT_TRUE(reserve_charged(vector, 1000, charge, "a vector"));
  EXPECT_EQ(vector.capacity(), 1000u);
  EXPECT_EQ(budget->used(), block_bytes(4000));
  ASSERT_TRUE(reserve_charged(vector, 1000, charge, "a vector"));
  ASSERT_TRUE(reserve_charged(vector, 1001, charge, "a vector"));
  EXPECT_EQ(vector.capacity(), 2000u);
  EXPECT_EQ(budget->used(), block_bytes(8000));
  // Even growth by one element would need both blocks.
  EXPECT_FALSE(reserve_charged(vector, 2001, charge, "a vector"));
  EXPECT_EQ(vector.capacity(), 2000u);
  EXPECT_EQ(budget->used(), block_bytes(8000));
}

TEST(ReserveCharged, GrowsByAnEighthWhereDoublingIsTooMuch) {
  const auto budget = make<Budget>(block_bytes(4000) + block_bytes(4500));
  Charge charge(budget);
  std::vector<uint32_t> vector;
  ASSERT_TRUE(reserve_charged(vector, 1000, charge, "a vector"));
  ASSERT_TRUE(reserve_charged(vector, 1001, charge, "a vector"));
  EXPECT_EQ(vector.capacity(), 1125u);
  EXPECT_EQ(budget->used(), block_bytes(4500));
  // One element at a time would move all the others each time.
  EXPECT_FALSE(reserve_charged(vector, 1126, charge, "a vector"));
  EXPECT_EQ(budget->used(), block_bytes(4500));
}

}  // namespace
}  // namespace halyard
