#include "vm/object/spare_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "status_testing.h"
#include "vm/object/buffer.h"

namespace halyard::vm::test {
namespace {

constexpr uint64_t kLimit = uint64_t{1} << 30;

Ref<Buffer> allocate(SpareBlocks& spare, uint64_t length, Budget* budget = nullptr, uint32_t alignment = 0) {
  auto buffer = Buffer::allocate(length, alignment, kLimit, budget, &spare);
  EXPECT_TRUE(buffer);
  return buffer ? *buffer : Ref<Buffer>();
}

bool is_zero(const Buffer& buffer) {
  return std::ranges::all_of(buffer.span(), [](uint8_t byte) { return byte == 0; });
}

void set_written(Buffer& buffer, uint64_t bytes) {
  std::memcpy(reinterpret_cast<std::byte*>(&buffer) + Buffer::layout().written, &bytes, sizeof bytes);
}

TEST(SpareBlocks, MemoryIsUsedAgainAndIsZero) {
  SpareBlocks spare;
  Ref<Buffer> buffer = allocate(spare, 5000);
  uint8_t* const memory = buffer->data();
  std::memset(memory, 1, 5000);
  buffer = nullptr;
  buffer = allocate(spare, 4000);
  EXPECT_EQ(buffer->data(), memory);
  EXPECT_EQ(buffer->length(), 4000);
  EXPECT_TRUE(is_zero(*buffer));
  std::memset(memory, 2, 4000);
  buffer = nullptr;
  buffer = allocate(spare, 5000);
  EXPECT_EQ(buffer->data(), memory);
  EXPECT_TRUE(is_zero(*buffer));
}

TEST(SpareBlocks, OnlyWrittenBytesAreCleared) {
  SpareBlocks spare;
  for (const uint64_t written : {uint64_t{0}, uint64_t{100}, std::numeric_limits<uint64_t>::max()}) {
    Ref<Buffer> buffer = allocate(spare, 4096);
    buffer->data()[99] = 1;
    buffer->data()[4095] = 2;
    set_written(*buffer, written);
    buffer = nullptr;
    buffer = allocate(spare, 4096);
    // A number that is too small shows which bytes were cleared.
    EXPECT_EQ(buffer->data()[99], written == 0 ? 1 : 0) << written;
    EXPECT_EQ(buffer->data()[4095], written <= 100 ? 2 : 0) << written;
    std::memset(buffer->data(), 0, 4096);
  }
}

// The address of the data of a buffer that is released again.
const uint8_t* data_of_next(SpareBlocks& spare, uint64_t length) { return allocate(spare, length)->data(); }

TEST(SpareBlocks, BlocksOfOtherSizesStay) {
  SpareBlocks spare;
  Ref<Buffer> small = allocate(spare, 2000);
  Ref<Buffer> large = allocate(spare, 9000);
  const uint8_t* const in_small = small->data();
  const uint8_t* const in_large = large->data();
  small = nullptr;
  large = nullptr;
  EXPECT_EQ(data_of_next(spare, 1500), in_small);
  EXPECT_EQ(data_of_next(spare, 4545), in_large);
  EXPECT_EQ(spare.kept_blocks(), 2);
  const Ref<Buffer> between = allocate(spare, 2100);  // the large block has more than twice the bytes
  EXPECT_NE(between->data(), in_large);
  const Ref<Buffer> larger = allocate(spare, 9100);
  EXPECT_EQ(spare.kept_blocks(), 2);
}

TEST(SpareBlocks, TheLastBlockOfASizeIsUsedFirst) {
  SpareBlocks spare;
  Ref<Buffer> one = allocate(spare, 4096), other = allocate(spare, 4096), larger = allocate(spare, 5000);
  const uint8_t* const in_other = other->data();
  one = nullptr;
  other = nullptr;
  larger = nullptr;
  EXPECT_EQ(data_of_next(spare, 4090), in_other);
}

TEST(SpareBlocks, SmallAndAlignedBuffersAreKept) {
  SpareBlocks spare;
  for (const uint64_t length : {0, 1, 63, 64, 65, 1000}) {
    Ref<Buffer> buffer = allocate(spare, length, nullptr, SpareBlocks::kAlignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % SpareBlocks::kAlignment, 0);
    EXPECT_EQ(buffer->length(), length);
    std::memset(buffer->data(), 1, length);
    const uint8_t* const memory = buffer->data();
    buffer = nullptr;
    buffer = allocate(spare, length);
    EXPECT_EQ(buffer->data(), memory) << length;
    EXPECT_TRUE(is_zero(*buffer)) << length;
  }
}

TEST(SpareBlocks, LargeMoreAlignedAndManyBuffersAreNotKept) {
  SpareBlocks spare;
  allocate(spare, 4096, nullptr, 2 * SpareBlocks::kAlignment);
  allocate(spare, SpareBlocks::kMaxKept + 1);
  EXPECT_FALSE(spare.trim());
  std::vector<Ref<Buffer>> buffers;
  for (size_t i = 0; i < SpareBlocks::kBlocks + 3; ++i) buffers.push_back(allocate(spare, 4096));
  buffers.clear();
  EXPECT_EQ(spare.kept_blocks(), SpareBlocks::kBlocks);
}

TEST(SpareBlocks, KeptBytesAreLimited) {
  SpareBlocks spare;
  constexpr uint64_t kLarge = SpareBlocks::kMaxKept / 2 + 1;
  Ref<Buffer> one = allocate(spare, kLarge), other = allocate(spare, kLarge);
  one = nullptr;
  other = nullptr;
  EXPECT_EQ(spare.kept_blocks(), 1);
  EXPECT_TRUE(spare.trim());
  EXPECT_EQ(spare.kept_blocks(), 0);
}

TEST(SpareBlocks, KeptMemoryIsChargedAndMakesRoom) {
  const auto budget = make<Budget>(20000);
  {
    SpareBlocks spare;
    allocate(spare, 12000, budget.get());
    const uint64_t kept = budget->used();
    EXPECT_GE(kept, 12000);
    allocate(spare, 10000, budget.get());
    EXPECT_EQ(budget->used(), kept);  // the same block
    // There is room for this buffer only without the block.
    const Ref<Buffer> large = allocate(spare, 15000, budget.get());
    EXPECT_EQ(spare.kept_blocks(), 0);
    EXPECT_FAILS(RESOURCE_EXHAUSTED, "", Buffer::allocate(15000, 0, kLimit, budget.get(), &spare));
  }
  EXPECT_EQ(budget->used(), 0);
}

TEST(SpareBlocks, ObjectsAreCounted) {
  const auto objects = std::make_shared<LiveObjects>();
  const auto budget = make<Budget>(Budget::kNoLimit, objects);
  const auto count = [&] {
    int64_t alive = 0;
    objects->each([&](const ObjectType& type, uint64_t live, uint64_t) {
      if (&type == &Buffer::kType) alive += static_cast<int64_t>(live);
    });
    return alive;
  };
  SpareBlocks spare;
  for (int i = 0; i < 2; ++i) {
    Ref<Buffer> buffer = allocate(spare, 4096, budget.get());
    EXPECT_EQ(count(), 1);
    buffer = nullptr;
    EXPECT_EQ(count(), 0);
  }
}

}  // namespace
}  // namespace halyard::vm::test
