// Nodes come back: those of the slots, and those of the list behind them, up to a limit.
#include "base/node_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace halyard {
namespace {

TEST(NodePool, NodesOfABurstAreUsedAgain) {
  constexpr size_t kCount = 300;
  for (const size_t size : {size_t{1}, size_t{64}, size_t{200}}) {
    NodePool pool;
    std::vector<void*> taken;
    std::set<void*> first;
    for (size_t i = 0; i < kCount; ++i) {
      taken.push_back(pool.take(size));
      std::memset(taken.back(), static_cast<int>(i), size);
      EXPECT_TRUE(first.insert(taken.back()).second);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(taken.back()) % NodePool::kAlignment, 0u);
    }
    for (size_t i = 0; i < kCount; ++i)
      EXPECT_EQ(static_cast<uint8_t*>(taken[i])[size - 1], static_cast<uint8_t>(i));
    for (void* const node : taken) pool.give(node, size);
    std::set<void*> second;
    size_t again = 0;
    for (size_t i = 0; i < kCount; ++i) {
      void* const node = pool.take(size);
      EXPECT_TRUE(second.insert(node).second);
      again += first.contains(node);
    }
    EXPECT_GE(again, size_t{256});
    for (void* const node : second) pool.give(node, size);
    pool.trim();
  }
}

TEST(NodePool, ANodeIsTakenAgain) {
  NodePool pool;
  void* const node = pool.take(100);
  pool.give(node, 100);
  EXPECT_EQ(pool.take(128), node) << "of the same size as 100";
  void* const other = pool.take(100);
  EXPECT_NE(other, node);
  pool.give(node, 128);
  pool.trim();
  pool.give(other, 100);
}

TEST(NodePool, LargeNodesAndThoseOfNoBytes) {
  NodePool pool;
  for (const size_t size : {size_t{0}, NodePool::kMaxKept, NodePool::kMaxKept + 1, size_t{100000}}) {
    std::vector<void*> taken;
    for (int i = 0; i < 100; ++i) {
      taken.push_back(pool.take(size));
      if (size > 0) std::memset(taken.back(), 1, size);
    }
    for (void* const node : taken) pool.give(node, size);
  }
}

TEST(NodePool, ThreadsExchangeNodes) {
  NodePool pool;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&pool, thread] {
      for (int round = 0; round < 200; ++round) {
        std::vector<uint8_t*> taken;
        for (int i = 0; i < 60; ++i) {
          taken.push_back(static_cast<uint8_t*>(pool.take(100)));
          std::memset(taken.back(), thread, 100);
        }
        for (uint8_t* const node : taken) {
          EXPECT_EQ(node[0], thread);
          EXPECT_EQ(node[99], thread);
          pool.give(node, 100);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace halyard
