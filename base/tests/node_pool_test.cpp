// Nodes of all sizes: aligned, kept for the next of their size, and freed where there is no place.
#include "base/node_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace halyard {
namespace {

TEST(NodePoolTest, NodesAreAlignedAndHaveTheirSize) {
  NodePool pool;
  for (const size_t size :
       {size_t{1}, size_t{64}, size_t{65}, NodePool::kMaxKept, NodePool::kMaxKept + 1, size_t{100'000}}) {
    void* const node = pool.take(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(node) % NodePool::kAlignment, 0u) << size;
    std::memset(node, 1, size);
    pool.give(node, size);
  }
}

TEST(NodePoolTest, ANodeIsTakenAgain) {
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

TEST(NodePoolTest, MoreThanThereArePlacesForAreFreed) {
  NodePool pool;
  std::vector<void*> nodes;
  for (int i = 0; i < 40; ++i) nodes.push_back(pool.take(64));
  const std::set<void*> all(nodes.begin(), nodes.end());
  EXPECT_EQ(all.size(), nodes.size());
  for (void* const node : nodes) pool.give(node, 64);
  for (void*& node : nodes) node = pool.take(64);
  EXPECT_EQ(std::set<void*>(nodes.begin(), nodes.end()).size(), nodes.size());
  for (void* const node : nodes) pool.give(node, 64);
}

}  // namespace
}  // namespace halyard
