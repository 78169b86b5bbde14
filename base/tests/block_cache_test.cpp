// Kept blocks: whose bytes a block may show.
#include "base/block_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "halyard/abi.h"

namespace halyard {
namespace {

constexpr uint64_t kSizes[] = {0, 1, 24, 64, 65, 1000, 4096, 5000, 70000, 3000000, 9000000};

uint64_t count(const uint8_t* block, uint64_t size, uint8_t byte) {
  return static_cast<uint64_t>(std::ranges::count(std::span(block, size), byte));
}

// Takes a block, checks that all of it is zero but for what may stay, fills it, and gives it back.
void expect_zeros(BlockCache& cache, uint64_t size, uint64_t owner, uint8_t own) {
  uint8_t* const block = cache.take(size, owner);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % BlockCache::kAlignment, 0u);
  EXPECT_EQ(count(block, size, 0) + (own ? count(block, size, own) : 0), size)
      << size << " bytes for owner " << owner;
  std::memset(block, own ? own : 0x77, size);
  cache.give(block, size, owner);
}

TEST(BlockCache, NewBlocksAreZeroAlthoughTheHeapIsNot) {
  for (const uint64_t size : kSizes) {
    BlockCache cache;
    void* const before = std::malloc(size + 200);
    std::memset(before, 0x99, size + 200);
    std::free(before);
    expect_zeros(cache, size, 1, 0);
  }
}

TEST(BlockCache, BlocksOfOthersAreCleared) {
  BlockCache cache;
  for (const uint64_t size : kSizes)
    for (const uint64_t owner : {1, 2, 1, 3}) expect_zeros(cache, size, owner, static_cast<uint8_t>(owner));
}

TEST(BlockCache, NobodySharesWithNobody) {
  BlockCache cache;
  for (const uint64_t size : kSizes)
    for (int i = 0; i < 3; ++i) expect_zeros(cache, size, BlockCache::kNobody, 0);
}

TEST(BlockCache, WhatIsOverwrittenIsClearedForTheNext) {
  BlockCache cache;
  for (const uint64_t size : kSizes) {
    for (const uint64_t next : {uint64_t{1}, BlockCache::kNobody}) {
      uint8_t* const block = cache.take(size, BlockCache::kWritesAll);
      std::memset(block, 0x55, size);
      cache.give(block, size, BlockCache::kWritesAll);
      expect_zeros(cache, size, next, 0);
    }
  }
}

// A block is as large as its class: 1000 bytes and 1024 share blocks.
TEST(BlockCache, TheSlackOfABlockIsClearedToo) {
  BlockCache cache;
  uint8_t* block = cache.take(1024, 1);
  std::memset(block, 1, 1024);
  cache.give(block, 1024, 1);
  cache.give(cache.take(1000, 2), 1000, 2);
  block = cache.take(1024, 2);
  EXPECT_EQ(count(block, 1024, 0), 1024u);
  cache.give(block, 1024, 2);
}

// The owner's own bytes stay, except where the cache has kept its own.
TEST(BlockCache, TheOwnersBytesNeedNotBeCleared) {
  BlockCache cache;
  uint8_t* block = cache.take(100000, 5);
  std::memset(block, 5, 100000);
  cache.give(block, 100000, 5);
  block = cache.take(100000, 5);
  EXPECT_GE(count(block, 100000, 5), 100000u - 64);
  EXPECT_EQ(count(block, 100000, 5) + count(block, 100000, 0), 100000u);
  cache.give(block, 100000, 5);
}

TEST(BlockCache, WithoutMemoryThereIsNoBlock) {
  if (HALYARD_SANITIZER_KIND != 0) GTEST_SKIP() << "a sanitizer's calloc ends the process";
  BlockCache cache;
  expect_zeros(cache, 1000, 1, 1);  // is kept, and freed for the sake of the next
  EXPECT_EQ(cache.take(BlockCache::kMaxBlock, 1), nullptr);
  expect_zeros(cache, 1000, 1, 0);
}

TEST(BlockCache, KeepsOnlySoMuch) {
  BlockCache cache;
  constexpr uint64_t kSize = 32 << 20;
  std::vector<uint8_t*> blocks;
  for (uint64_t taken = 0; taken <= BlockCache::kMaxKept; taken += kSize)
    blocks.push_back(cache.take(kSize, 1));
  for (uint8_t* const block : blocks) {
    ASSERT_NE(block, nullptr);
    cache.give(block, kSize, 1);  // the last is freed
  }
  expect_zeros(cache, kSize, 2, 2);
}

}  // namespace
}  // namespace halyard
