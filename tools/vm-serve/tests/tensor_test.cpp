// Sizes of tensors, truth values, and growing memory.
#include "tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "halyard/element_type.h"

namespace halyard::tools::serve {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

std::optional<uint64_t> count(std::vector<int64_t> shape, uint32_t size) {
  return element_count(shape, size);
}

TEST(Tensor, CountsOfElements) {
  EXPECT_EQ(count({}, 4), 1u);
  EXPECT_EQ(count({2, 3, 4}, 4), 24u);
  EXPECT_EQ(count({1, 1}, 1), 1u);
  EXPECT_EQ(count({2, 0, 3}, 4), 0u);
  EXPECT_EQ(count({2, -1}, 4), std::nullopt);
  // The bytes have 63 bits, also where a dimension is 0.
  EXPECT_EQ(count({kMost}, 1), static_cast<uint64_t>(kMost));
  EXPECT_EQ(count({kMost / 7, 7}, 1), static_cast<uint64_t>(kMost));
  EXPECT_EQ(count({kMost / 7 + 1, 7}, 1), std::nullopt);
  EXPECT_EQ(count({kMost}, 2), std::nullopt);
  EXPECT_EQ(count({kMost / 2}, 2), static_cast<uint64_t>(kMost / 2));
  EXPECT_EQ(count({kMost, 2, 0}, 1), std::nullopt);
  EXPECT_EQ(count({0, kMost, 2}, 1), std::nullopt);
  size_t most = 1;
  while (count(std::vector<int64_t>(most + 1, 1), 4)) ++most;
  EXPECT_GE(most, 8u);
  EXPECT_LE(most, 1024u);
}

TEST(Tensor, TruthValuesAreZeroOrOne) {
  std::vector<std::byte> bytes = {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{255}};
  const std::vector<std::byte> before = bytes;
  make_truth_values(bytes, *datatype_of(HALYARD_ELEMENT_UI8));
  EXPECT_EQ(bytes, before);
  make_truth_values(bytes, *datatype_of(HALYARD_ELEMENT_BOOL));
  EXPECT_EQ(bytes, (std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{1}, std::byte{1}}));
}

TEST(Tensor, MemoryGrowsAndKeepsItsContents) {
  AlignedBuffer buffer;
  EXPECT_TRUE(buffer.resize(0));
  EXPECT_EQ(buffer.size(), 0u);
  ASSERT_TRUE(buffer.resize(100));
  std::memset(buffer.data(), 7, 100);
  const std::byte* const place = buffer.data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(place) % AlignedBuffer::kAlignment, 0u);
  // Nothing moves where there is room.
  ASSERT_TRUE(buffer.reserve(10));
  ASSERT_TRUE(buffer.reserve(128));
  ASSERT_TRUE(buffer.resize(128));
  EXPECT_EQ(buffer.data(), place);
  ASSERT_TRUE(buffer.resize(5000));
  EXPECT_EQ(buffer.size(), 5000u);
  EXPECT_EQ(buffer.span().size(), 5000u);
  for (size_t i = 0; i < 100; ++i) ASSERT_EQ(buffer.data()[i], std::byte{7}) << i;
  std::memset(buffer.data(), 8, 5000);
  ASSERT_TRUE(buffer.resize(1));
  EXPECT_EQ(buffer.size(), 1u);
  EXPECT_FALSE(buffer.reserve(std::numeric_limits<size_t>::max()));
  EXPECT_FALSE(buffer.reserve(std::numeric_limits<size_t>::max() / 2));
  EXPECT_EQ(buffer.data()[0], std::byte{8});
  // It doubles, so that a few allocations are enough.
  AlignedBuffer growing;
  size_t moves = 0;
  for (size_t size = 1; size < 100000; ++size) {
    const std::byte* const before = growing.data();
    ASSERT_TRUE(growing.resize(size));
    moves += growing.data() != before;
  }
  EXPECT_LE(moves, 16u);
}

}  // namespace
}  // namespace halyard::tools::serve
