// The bytes that each rank sends and receives in each kind of collective, the ranges that may overlap, and
// operations that are none.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "hal/channel/operation.h"
#include "hal/command/command_list.h"
#include "status_testing.h"

namespace halyard::hal {
namespace {

constexpr uint32_t packed(uint32_t kind, uint32_t reduction = 0,
                          uint32_t element = HALYARD_COLLECTIVE_FLOAT_32) {
  return kind | reduction << 8 | element << 16;
}
constexpr uint32_t reduction_of(uint32_t kind) {
  return kind == HALYARD_COLLECTIVE_ALL_REDUCE || kind == HALYARD_COLLECTIVE_REDUCE ||
                 kind == HALYARD_COLLECTIVE_REDUCE_SCATTER
             ? HALYARD_REDUCTION_SUM
             : HALYARD_REDUCTION_NONE;
}

constexpr uint64_t kPlenty = UINT64_MAX;

// Six elements of four bytes; rank 1 of 3, then rank 0.
TEST(ChannelOperation, BytesOfEachKind) {
  struct {
    uint32_t kind;
    uint32_t parameter;
    CollectiveSizes of_rank_1, of_rank_0;
  } const cases[] = {
      {HALYARD_COLLECTIVE_ALL_GATHER, 0, {24, 72}, {24, 72}},
      {HALYARD_COLLECTIVE_ALL_REDUCE, 0, {24, 24}, {24, 24}},
      {HALYARD_COLLECTIVE_ALL_TO_ALL, 0, {24, 24}, {24, 24}},
      {HALYARD_COLLECTIVE_BROADCAST, 1, {24, 24}, {0, 24}},
      {HALYARD_COLLECTIVE_REDUCE, 1, {24, 24}, {24, 0}},
      {HALYARD_COLLECTIVE_REDUCE_SCATTER, 0, {72, 24}, {72, 24}},
      {HALYARD_COLLECTIVE_SEND, 2, {24, 0}, {24, 0}},
      {HALYARD_COLLECTIVE_RECV, 2, {0, 24}, {0, 24}},
      {HALYARD_COLLECTIVE_SEND_RECV, 2 | 0 << 16, {24, 24}, {24, 24}},
      {HALYARD_COLLECTIVE_SEND_RECV, 0xFFFF | 0 << 16, {0, 24}, {0, 24}},
      {HALYARD_COLLECTIVE_SEND_RECV, 2 | 0xFFFFu << 16, {24, 24}, {24, 24}},
  };
  for (const auto& [kind, parameter, of_rank_1, of_rank_0] : cases) {
    for (const uint32_t rank : {1u, 0u}) {
      SCOPED_TRACE(fmt::format("kind {} of rank {}", kind, rank));
      const Place place = {rank, 3};
      halyard_collective_t collective =
          ASSERT_VALUE(unpack(packed(kind, reduction_of(kind)), parameter, 6, place));
      const CollectiveSizes sizes = ASSERT_VALUE(sizes_of(collective, place, kPlenty, kPlenty));
      const CollectiveSizes& expected = rank == 1 ? of_rank_1 : of_rank_0;
      EXPECT_EQ(sizes.send, expected.send);
      EXPECT_EQ(sizes.receive, expected.receive);
    }
  }
}

// Compilers count what an all_gather receives; the lengths of the ranges tell.
TEST(ChannelOperation, AnAllGatherIsCountedInTwoWays) {
  const Place place = {0, 3};
  struct {
    uint64_t count, send_length, receive_length, elements;
  } const cases[] = {
      {6, 24, 72, 6},                 // as sent
      {6, 8, 24, 2},                  // as received
      {6, 24, 71, 2},                 // not enough to receive three times as many
      {6, 23, 72, 2}, {5, 8, 24, 5},  // three ranks do not divide it
      {0, 0, 0, 0},
  };
  for (const auto& [count, send_length, receive_length, elements] : cases) {
    halyard_collective_t gather =
        ASSERT_VALUE(unpack(packed(HALYARD_COLLECTIVE_ALL_GATHER), 0, count, place));
    const CollectiveSizes sizes = ASSERT_VALUE(sizes_of(gather, place, send_length, receive_length));
    EXPECT_EQ(gather.element_count, elements) << count << ' ' << send_length << ' ' << receive_length;
    EXPECT_EQ(sizes.receive, 3 * sizes.send);
  }
}

TEST(ChannelOperation, BytesFitInto64Bits) {
  const Place place = {1, 3};
  const auto sizes = [&](uint32_t kind, uint64_t count) {
    halyard_collective_t collective = {};
    collective.kind = kind;
    collective.element = HALYARD_COLLECTIVE_FLOAT_32;
    collective.element_count = count;
    return sizes_of(collective, place, kPlenty, kPlenty);
  };
  EXPECT_TRUE(sizes(HALYARD_COLLECTIVE_ALL_REDUCE, UINT64_MAX / 4));
  EXPECT_FAILS(INVALID_ARGUMENT, "fewer than 2^64 bytes",
               sizes(HALYARD_COLLECTIVE_ALL_REDUCE, UINT64_MAX / 4 + 1));
  EXPECT_TRUE(sizes(HALYARD_COLLECTIVE_REDUCE_SCATTER, UINT64_MAX / 12));
  EXPECT_FAILS(INVALID_ARGUMENT, "for 3 ranks",
               sizes(HALYARD_COLLECTIVE_REDUCE_SCATTER, UINT64_MAX / 12 + 1));
  // Three times as many would not fit, so the elements are those that are received.
  const uint64_t most = UINT64_MAX / 4 / 3 * 3;
  EXPECT_EQ(ASSERT_VALUE(sizes(HALYARD_COLLECTIVE_ALL_GATHER, most)).receive, most * 4);
}

TEST(ChannelOperation, RangesOverlapWhereTheKindAllowsIt) {
  const Place place = {1, 3};
  const auto overlap = [&](uint32_t kind, uint64_t send, uint64_t receive) {
    halyard_collective_t collective = *unpack(packed(kind, reduction_of(kind)), 1, 6, place);
    const CollectiveSizes sizes = *sizes_of(collective, place, kPlenty, kPlenty);
    return check_overlap(collective, place, sizes, send, receive).has_value();
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  for (uint32_t kind = HALYARD_COLLECTIVE_ALL_GATHER; kind <= HALYARD_COLLECTIVE_RECV; ++kind) {
    SCOPED_TRACE(kind);
    const bool is_pair = kind >= HALYARD_COLLECTIVE_SEND;
    EXPECT_TRUE(overlap(kind, 1000, 0));
    EXPECT_TRUE(overlap(kind, 0, 1000));
    EXPECT_TRUE(overlap(kind, 0, 72)) << "they meet";
    EXPECT_TRUE(overlap(kind, 72, 0));
    // The own block is the second of three.
    std::vector<Pair> allowed;
    if (reduction_of(kind) || kind == HALYARD_COLLECTIVE_BROADCAST) allowed = {{100, 100}};
    if (kind == HALYARD_COLLECTIVE_ALL_GATHER) allowed = {{124, 100}};
    if (kind == HALYARD_COLLECTIVE_REDUCE_SCATTER) allowed = {{100, 124}};
    for (const Pair& each :
         {Pair{100, 100}, Pair{124, 100}, Pair{100, 124}, Pair{101, 100}, Pair{100, 101}}) {
      const bool meets = each.first < each.second + 24 && each.second < each.first + 24;
      if (!meets && kind != HALYARD_COLLECTIVE_ALL_GATHER && kind != HALYARD_COLLECTIVE_REDUCE_SCATTER)
        continue;
      const bool is_allowed = is_pair || std::ranges::find(allowed, each) != allowed.end() ||
                              (kind == HALYARD_COLLECTIVE_ALL_GATHER && each == Pair{100, 124}) ||
                              (kind == HALYARD_COLLECTIVE_REDUCE_SCATTER && each == Pair{124, 100});
      EXPECT_EQ(overlap(kind, each.first, each.second), is_allowed) << each.first << ' ' << each.second;
    }
  }
}

TEST(ChannelOperation, NumbersThatAreNone) {
  const Place place = {1, 3};
  EXPECT_FAILS(INVALID_ARGUMENT, "a reduction below 6",
               unpack(packed(HALYARD_COLLECTIVE_ALL_REDUCE, 6), 0, 1, place));
  for (const uint32_t kind : {HALYARD_COLLECTIVE_REDUCE, HALYARD_COLLECTIVE_BROADCAST})
    EXPECT_FAILS(INVALID_ARGUMENT, "expected a root rank below 3",
                 unpack(packed(kind, reduction_of(kind)), 3, 1, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a target rank below 3",
               unpack(packed(HALYARD_COLLECTIVE_SEND), 3, 1, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a source rank below 3",
               unpack(packed(HALYARD_COLLECTIVE_RECV), 3, 1, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a target rank below 3",
               unpack(packed(HALYARD_COLLECTIVE_SEND_RECV), 3, 1, place));
}

// Captures may have any numbers; their text shows what is unknown.
TEST(ChannelOperation, TextOfAnyNumbers) {
  CollectiveCommand command = {};
  command.channel = 2;
  command.operation = packed(HALYARD_COLLECTIVE_REDUCE, HALYARD_REDUCTION_MAXIMUM);
  command.parameter = 0x10;
  command.element_count = 5;
  EXPECT_EQ(command_text(command), "collective channel2 reduce maximum f32 x 5 parameter 0x10");
  command.operation = packed(HALYARD_COLLECTIVE_BROADCAST);
  command.parameter = 0;
  EXPECT_EQ(command_text(command), "collective channel2 broadcast f32 x 5");
  command.operation = 0xFFFFFF;
  EXPECT_EQ(command_text(command), "collective channel2 ? ? ? x 5");
}

}  // namespace
}  // namespace halyard::hal
