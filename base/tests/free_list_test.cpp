// A list of free nodes: the last first, and with many threads each node belongs to one.
#include "base/free_list.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace halyard {
namespace {

struct FreeNode {
  FreeNode* next = nullptr;
  std::atomic<int> owners = 0;
};
using FreeNodes = FreeList<FreeNode, &FreeNode::next>;

int length(const FreeNode* chain) {
  int count = 0;
  for (; chain; chain = chain->next) ++count;
  return count;
}

TEST(FreeListTest, TheLastGivenIsTakenFirst) {
  std::array<FreeNode, 3> nodes;
  FreeNodes list;
  EXPECT_EQ(list.take(), nullptr);
  for (FreeNode& node : nodes) list.give(&node);
  EXPECT_EQ(list.take(), &nodes[2]);
  EXPECT_EQ(list.take(), &nodes[1]);
  list.give(&nodes[2]);
  EXPECT_EQ(length(list.take_all()), 2);
  EXPECT_EQ(list.take_all(), nullptr);
  EXPECT_EQ(list.take(), nullptr);
}

TEST(FreeListTest, BetweenThreadsNoNodeIsLostOrOwnedTwice) {
  constexpr int kNodes = 16, kThreads = 4, kTurns = 30'000;
  std::array<FreeNode, kNodes> nodes;
  FreeNodes list;
  for (FreeNode& node : nodes) list.give(&node);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        FreeNode* const node = list.take();
        if (!node) continue;  // another thread holds the list
        EXPECT_EQ(node->owners.fetch_add(1), 0);
        if (turn % 256 == 0) std::this_thread::yield();  // on a busy machine it takes long
        EXPECT_EQ(node->owners.fetch_sub(1), 1);
        list.give(node);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(length(list.take_all()), kNodes);
}

}  // namespace
}  // namespace halyard
