// The memory of one device: the limit, statistics after a failure, the blocks that are kept, and a validating
// heap.
#include "heap.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/block_cache.h"

namespace halyard::local {
namespace {

constexpr uint64_t kOwner = 7;
constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(Heap, SizesBeyondTheLimitAreRefusedAndNotCounted) {
  Heap heap(100, false);
  const Result<uint8_t*> first = heap.allocate(60, false, kOwner);
  ASSERT_TRUE(first);
  for (const uint64_t size : {uint64_t{101}, uint64_t{41}, UINT64_MAX}) {
    const Result<uint8_t*> second = heap.allocate(size, true, kOwner);
    ASSERT_FALSE(second) << size;
    EXPECT_EQ(second.error().code(), Code::RESOURCE_EXHAUSTED);
    EXPECT_NE(second.error().message().find("the device has 100 bytes, 60 of them are in use"),
              std::string::npos)
        << second.error().message();
  }
  EXPECT_EQ(heap.statistics().host_bytes_allocated, 0u);
  EXPECT_EQ(heap.statistics().host_bytes_peak, 0u);
  const Result<uint8_t*> rest = heap.allocate(40, true, kOwner);
  ASSERT_TRUE(rest);
  EXPECT_EQ(heap.statistics().host_bytes_live, 40u);
  EXPECT_EQ(heap.statistics().device_bytes_live, 60u);
  heap.free(*first, 60, false, kOwner);
  heap.free(*rest, 40, true, kOwner);
  EXPECT_EQ(heap.statistics().device_bytes_live, 0u);
  EXPECT_EQ(heap.statistics().device_bytes_peak, 60u);
}

// What no machine has: the system refuses it, and nothing is counted.
TEST(Heap, MemoryThatTheSystemRefusesIsNotCounted) {
  for (const bool validates : {false, true}) {
    Heap heap(BlockCache::kMaxBlock, validates);
    const Result<uint8_t*> kept = heap.allocate(100, false, kOwner);
    ASSERT_TRUE(kept);
    const auto refused = [&] {
      const Result<uint8_t*> none = heap.allocate(BlockCache::kMaxBlock - 100, false, kOwner);
      return !none && none.error().code() == Code::RESOURCE_EXHAUSTED;
    };
    EXPECT_TRUE(refused());
    EXPECT_EQ(heap.statistics().device_bytes_live, 100u) << validates;
    heap.free(*kept, 100, false, kOwner);
    EXPECT_TRUE(refused()) << "what is in quarantine is given back first";
    EXPECT_EQ(heap.statistics().device_bytes_live, 0u) << validates;
  }
}

TEST(Heap, AValidatingHeapMarksFreshAndFreedBytes) {
  Heap heap(BlockCache::kMaxBlock, true);
  uint8_t* const bytes = heap.allocate(200, false, kOwner).value();
  EXPECT_TRUE(std::all_of(bytes, bytes + 200, [](uint8_t byte) { return byte == Heap::kFreshPattern; }));
  heap.free(bytes, 200, false, kOwner);
  EXPECT_TRUE(std::all_of(bytes, bytes + 200, [](uint8_t byte) { return byte == Heap::kFreedPattern; }))
      << "in quarantine";
  uint8_t* const other = heap.allocate(200, false, kOwner).value();
  EXPECT_NE(other, bytes) << "freed bytes are used again late";
  heap.free(other, 200, false, kOwner);
  uint8_t* const empty = heap.allocate(0, false, kOwner).value();
  EXPECT_NE(empty, nullptr);
  heap.free(empty, 0, false, kOwner);
}

TEST(Heap, AValidatingHeapUsesTheOldestBytesAgainWhenManyAreInQuarantine) {
  Heap heap(BlockCache::kMaxBlock, true);
  constexpr uint64_t kSize = 16 * kMiB;
  uint8_t* const first = heap.allocate(kSize, false, kOwner).value();
  heap.free(first, kSize, false, kOwner);
  bool again = false;
  for (uint64_t size = 0; size <= Heap::kMaxQuarantined; size += kSize) {
    uint8_t* const next = heap.allocate(kSize, false, kOwner).value();
    again = again || next == first;
    heap.free(next, kSize, false, kOwner);
  }
  EXPECT_TRUE(again);
}

// A program that uses many sizes does not keep a block of each: a block that was given back to the system is
// zero when it comes again, one that was kept has the owner's bytes.
TEST(Heap, BlocksOfOtherSizesAreKeptUpToALimit) {
  for (const auto& [size, is_kept] : {std::pair{10 * kMiB, true}, {20 * kMiB, false}}) {
    Heap heap(BlockCache::kMaxBlock, false);
    uint8_t* const first = heap.allocate(size, false, kOwner).value();
    first[1000] = 1;
    heap.free(first, size, false, kOwner);
    constexpr uint64_t kOther = 30 * kMiB;
    static_assert(20 * kMiB > Heap::kMaxIdle && 10 * kMiB < Heap::kMaxIdle);
    heap.free(heap.allocate(kOther, false, kOwner).value(), kOther, false, kOwner);
    uint8_t* const again = heap.allocate(size, false, kOwner).value();
    EXPECT_EQ(again[1000], is_kept ? 1 : 0) << size;
    heap.free(again, size, false, kOwner);
    EXPECT_EQ(heap.statistics().device_bytes_peak, kOther);
  }
}

}  // namespace
}  // namespace halyard::local
