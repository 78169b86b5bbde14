// Collectives between the ranks of one process: the bytes that each kind moves, and what every rank learns
// when ranks disagree, leave, are stopped or are late.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "base/tracer.h"
#include "hal/channel/local_group.h"
#include "status_testing.h"

namespace halyard::hal {
namespace {

using Numbers = std::vector<int32_t>;

// A group, whose ranks submit collectives of int32.
class LocalRanks {
 public:
  explicit LocalRanks(uint32_t count) : group("world", count), outcomes_(count) {
    for (uint32_t rank = 0; rank < count; ++rank) group.join(rank);
  }

  static halyard_collective_t collective(uint32_t kind, uint64_t elements, const Numbers* send,
                                         Numbers* receive) {
    halyard_collective_t made = {};
    made.struct_size = sizeof made;
    made.kind = kind;
    made.element = HALYARD_COLLECTIVE_SINT_32;
    made.element_count = elements;
    made.target = made.source = HALYARD_NO_RANK;
    made.send = send ? send->data() : nullptr;
    made.receive = receive ? receive->data() : nullptr;
    return made;
  }
  void submit(uint32_t rank, halyard_collective_t collective) {
    collective.completed = [](void* user, halyard_status_t status) {
      auto& all = *static_cast<std::vector<Status>*>(user);
      all.push_back(Status::adopt(status));
    };
    collective.user = &outcomes_[rank];
    LocalOutcome work;
    group.submit(rank, collective, work);
    work.carry_out();
  }
  void leave(uint32_t rank) {
    LocalOutcome work;
    group.leave(rank, work);
    work.carry_out();
  }
  // What the collectives of a rank that have completed became, in their order.
  const std::vector<Status>& outcomes(uint32_t rank) const { return outcomes_[rank]; }
  void expect_all_failed(Code code, std::string_view part) const {
    for (uint32_t rank = 0; rank < outcomes_.size(); ++rank)
      for (const Status& status : outcomes_[rank]) {
        EXPECT_EQ(status.code(), code) << rank;
        EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
      }
    EXPECT_EQ(group.broken().code(), code);
  }

  LocalGroup group;

 private:
  std::vector<std::vector<Status>> outcomes_;
};

struct Expectation {
  uint32_t kind;
  uint32_t reduction;
  uint64_t elements;
  std::array<Numbers, 3> sent, received;
};

const Expectation kExpectations[] = {
    {HALYARD_COLLECTIVE_ALL_GATHER, 0, 1, {{{1}, {2}, {3}}}, {{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}}},
    {HALYARD_COLLECTIVE_ALL_REDUCE,
     HALYARD_REDUCTION_SUM,
     2,
     {{{1, 2}, {3, 4}, {5, 6}}},
     {{{9, 12}, {9, 12}, {9, 12}}}},
    {HALYARD_COLLECTIVE_ALL_TO_ALL,
     0,
     3,
     {{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}},
     {{{1, 4, 7}, {2, 5, 8}, {3, 6, 9}}}},
    {HALYARD_COLLECTIVE_BROADCAST, 0, 2, {{{1, 2}, {3, 4}, {5, 6}}}, {{{3, 4}, {3, 4}, {3, 4}}}},
    {HALYARD_COLLECTIVE_REDUCE,
     HALYARD_REDUCTION_MAXIMUM,
     2,
     {{{1, 9}, {3, 4}, {5, 6}}},
     {{{-1, -1}, {5, 9}, {-1, -1}}}},
    {HALYARD_COLLECTIVE_REDUCE_SCATTER,
     HALYARD_REDUCTION_PRODUCT,
     1,
     {{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}},
     {{{28}, {80}, {162}}}},
};

TEST(LocalCollectives, EachKindMovesItsBlocks) {
  for (const Expectation& each : kExpectations) {
    LocalRanks ranks(3);
    std::array<Numbers, 3> received;
    for (uint32_t rank : {2u, 0u, 1u}) {
      received[rank] = Numbers(each.received[rank].size(), -1);
      halyard_collective_t collective =
          LocalRanks::collective(each.kind, each.elements, &each.sent[rank], &received[rank]);
      collective.reduction = each.reduction;
      collective.root = 1;
      ranks.submit(rank, collective);
      EXPECT_EQ(ranks.outcomes(rank).empty(), rank != 1) << each.kind << ": not all ranks have come";
    }
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(ranks.outcomes(rank).size(), 1u) << each.kind;
      EXPECT_TRUE(ranks.outcomes(rank)[0].ok()) << each.kind;
      EXPECT_EQ(received[rank], each.received[rank]) << each.kind << " of rank " << rank;
    }
  }
}

// The block that a rank sends may be its part of the buffer to receive; blocks may be empty.
TEST(LocalCollectives, BlocksMayBeInPlaceOrEmpty) {
  LocalRanks ranks(2);
  Numbers buffers[] = {{1, -1}, {-1, 2}};
  for (uint32_t rank : {0u, 1u}) {
    halyard_collective_t gather =
        LocalRanks::collective(HALYARD_COLLECTIVE_ALL_GATHER, 1, &buffers[rank], &buffers[rank]);
    gather.send = &buffers[rank][rank];
    ranks.submit(rank, gather);
  }
  EXPECT_EQ(buffers[0], (Numbers{1, 2}));
  EXPECT_EQ(buffers[1], (Numbers{1, 2}));
  for (uint32_t rank : {0u, 1u})
    ranks.submit(rank, LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 0, nullptr, nullptr));
  for (uint32_t rank : {0u, 1u}) {
    ASSERT_EQ(ranks.outcomes(rank).size(), 2u);
    EXPECT_TRUE(ranks.outcomes(rank)[1].ok());
  }
}

// More bytes than the piece in which reductions are carried out.
TEST(LocalCollectives, LongBlocksAreReducedInPieces) {
  constexpr size_t kElements = 10000;
  LocalRanks ranks(2);
  std::array<Numbers, 2> sent, received;
  for (uint32_t rank : {0u, 1u}) {
    for (size_t i = 0; i < kElements; ++i) sent[rank].push_back(static_cast<int32_t>(i * (rank + 1)));
    received[rank].resize(kElements);
    halyard_collective_t sum =
        LocalRanks::collective(HALYARD_COLLECTIVE_ALL_REDUCE, kElements, &sent[rank], &received[rank]);
    sum.reduction = HALYARD_REDUCTION_SUM;
    ranks.submit(rank, sum);
  }
  for (size_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(received[0][i], static_cast<int32_t>(3 * i)) << i;
    ASSERT_EQ(received[1][i], static_cast<int32_t>(3 * i)) << i;
  }
}

halyard_collective_t transfer(const Numbers* send, uint32_t target, Numbers* receive, uint32_t source) {
  const uint32_t kind = !receive ? HALYARD_COLLECTIVE_SEND
                        : !send  ? HALYARD_COLLECTIVE_RECV
                                 : HALYARD_COLLECTIVE_SEND_RECV;
  halyard_collective_t made = LocalRanks::collective(kind, 2, send, receive);
  made.target = target;
  made.source = source;
  return made;
}

TEST(LocalCollectives, PairsAreMatchedInTheirOrder) {
  LocalRanks ranks(2);
  const Numbers first = {1, 2}, second = {3, 4};
  Numbers received[2] = {{0, 0}, {0, 0}};
  ranks.submit(0, transfer(&first, 1, nullptr, HALYARD_NO_RANK));
  ranks.submit(0, transfer(&second, 1, nullptr, HALYARD_NO_RANK));
  EXPECT_TRUE(ranks.outcomes(0).empty());
  for (Numbers& numbers : received) ranks.submit(1, transfer(nullptr, HALYARD_NO_RANK, &numbers, 0));
  EXPECT_EQ(received[0], first);
  EXPECT_EQ(received[1], second);
  // The receiver comes first.
  ranks.submit(1, transfer(nullptr, HALYARD_NO_RANK, received, 0));
  ranks.submit(0, transfer(&second, 1, nullptr, HALYARD_NO_RANK));
  EXPECT_EQ(received[0], second);
  EXPECT_EQ(ranks.outcomes(0).size(), 3u);
  EXPECT_EQ(ranks.outcomes(1).size(), 3u);
}

TEST(LocalCollectives, WithoutASourceThereAreZeros) {
  LocalRanks ranks(2);
  const Numbers sent = {7, 8};
  Numbers received[2] = {{5, 5}, {5, 5}};
  ranks.submit(0, transfer(&sent, 1, received, HALYARD_NO_RANK));
  EXPECT_TRUE(ranks.outcomes(0).empty()) << "rank 1 has not read the numbers";
  ranks.submit(1, transfer(&sent, HALYARD_NO_RANK, received + 1, 0));
  EXPECT_EQ(received[0], (Numbers{0, 0}));
  EXPECT_EQ(received[1], sent);
  ranks.submit(1, transfer(&sent, HALYARD_NO_RANK, received + 1, HALYARD_NO_RANK));
  EXPECT_EQ(received[1], (Numbers{0, 0}));
  EXPECT_EQ(ranks.outcomes(1).size(), 2u);
}

TEST(LocalCollectives, RanksThatDisagreeFailOnAllRanks) {
  const std::function<void(halyard_collective_t&)> changes[] = {
      [](halyard_collective_t& other) { other.kind = HALYARD_COLLECTIVE_BROADCAST; },
      [](halyard_collective_t& other) { other.reduction = HALYARD_REDUCTION_SUM; },
      [](halyard_collective_t& other) { other.element = HALYARD_COLLECTIVE_UINT_32; },
      [](halyard_collective_t& other) { other.root = 1; },
      [](halyard_collective_t& other) { other.element_count = 1; },
  };
  for (const auto& change : changes) {
    LocalRanks ranks(3);
    Numbers numbers[] = {{1, 2}, {3, 4}, {5, 6}};
    halyard_collective_t collective =
        LocalRanks::collective(HALYARD_COLLECTIVE_REDUCE, 2, &numbers[0], &numbers[0]);
    collective.reduction = HALYARD_REDUCTION_MAXIMUM;
    ranks.submit(0, collective);
    collective.send = collective.receive = numbers[1].data();
    change(collective);
    ranks.submit(1, collective);
    ranks.submit(2, collective);
    for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.outcomes(rank).size(), 1u);
    ranks.expect_all_failed(Code::INVALID_ARGUMENT, "of rank 0 and ");
    EXPECT_EQ(numbers[0], (Numbers{1, 2})) << "nothing was written";
  }
}

TEST(LocalCollectives, PairsThatDisagreeFail) {
  for (const bool by_count : {true, false}) {
    LocalRanks ranks(2);
    Numbers numbers[] = {{1, 2}, {3, 4}};
    halyard_collective_t receive = transfer(nullptr, HALYARD_NO_RANK, &numbers[1], 0);
    if (by_count)
      receive.element_count = 1;
    else
      receive.element = HALYARD_COLLECTIVE_FLOAT_32;
    ranks.submit(1, receive);
    ranks.submit(0, transfer(numbers, 1, nullptr, HALYARD_NO_RANK));
    EXPECT_EQ(ranks.outcomes(0).size(), 1u);
    EXPECT_EQ(ranks.outcomes(1).size(), 1u);
    ranks.expect_all_failed(Code::INVALID_ARGUMENT, "expected ranks 0 and 1 of channel 'world' to agree");
    EXPECT_EQ(numbers[1], (Numbers{3, 4}));
  }
}

// A ring in which sending fails does not receive either, and completes once.
TEST(LocalCollectives, ATransferWithTwoPeersFailsOnce) {
  LocalRanks ranks(2);
  Numbers numbers[] = {{1, 2}, {3, 4}, {5, 6}};
  halyard_collective_t receive = transfer(nullptr, HALYARD_NO_RANK, &numbers[1], 0);
  receive.element_count = 1;
  ranks.submit(1, receive);
  ranks.submit(0, transfer(numbers, 1, numbers + 2, 1));
  EXPECT_EQ(ranks.outcomes(0).size(), 1u);
  EXPECT_EQ(ranks.outcomes(1).size(), 1u);
  ranks.expect_all_failed(Code::INVALID_ARGUMENT, "to agree");
}

TEST(LocalCollectives, ARankThatLeavesFailsThoseThatWait) {
  const Numbers sent = {1, 2};
  Numbers received = {0, 0};
  const halyard_collective_t round =
      LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 2, &sent, &received);
  const halyard_collective_t send = transfer(&sent, 1, nullptr, HALYARD_NO_RANK);
  const halyard_collective_t receive = transfer(nullptr, HALYARD_NO_RANK, &received, 1);
  for (const halyard_collective_t& collective : {round, send, receive}) {
    LocalRanks waiting(2);
    waiting.submit(0, collective);
    waiting.leave(1);
    EXPECT_EQ(waiting.outcomes(0).size(), 1u);
    waiting.expect_all_failed(Code::ABORTED, "rank 1 has closed channel 'world', and others wait for it");

    LocalRanks late(2);
    late.leave(1);
    EXPECT_TRUE(late.group.broken().ok()) << "nobody waits";
    late.submit(0, collective);
    EXPECT_EQ(late.outcomes(0).size(), 1u);
    late.expect_all_failed(Code::ABORTED, "rank 1 has closed channel 'world' before ");
  }
}

// Ranks close their channels one after another at the end, and may be one collective apart.
TEST(LocalCollectives, ARankMayLeaveWhenItsPartIsThere) {
  LocalRanks ranks(3);
  const Numbers sent = {1, 2};
  Numbers received = {0, 0};
  ranks.submit(0, LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 2, &sent, &received));
  ranks.leave(0);
  ranks.submit(1, LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 2, nullptr, &received));
  ranks.leave(1);
  EXPECT_TRUE(ranks.group.broken().ok());
  ranks.submit(2, LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 2, nullptr, &received));
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(ranks.outcomes(rank).size(), 1u);
    EXPECT_TRUE(ranks.outcomes(rank)[0].ok());
  }
  EXPECT_EQ(received, sent);
  // A pair that others have exchanged concerns nobody else.
  LocalRanks pair(3);
  pair.submit(0, transfer(&sent, 1, nullptr, HALYARD_NO_RANK));
  pair.leave(2);
  pair.submit(1, transfer(nullptr, HALYARD_NO_RANK, &received, 0));
  EXPECT_TRUE(pair.group.broken().ok());
  pair.leave(0);
  EXPECT_TRUE(pair.group.broken().ok()) << "nothing is left of the pair";
}

TEST(LocalCollectives, TheFirstFailureStays) {
  LocalRanks ranks(2);
  Numbers numbers = {1, 2};
  ranks.submit(0, LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 2, &numbers, &numbers));
  for (const Code code : {Code::DATA_LOSS, Code::CANCELLED}) {
    LocalOutcome work;
    ranks.group.fail({code, "a rank is gone"}, work);
    work.carry_out();
  }
  ranks.submit(1, LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 2, &numbers, &numbers));
  EXPECT_EQ(ranks.outcomes(0).size(), 1u);
  EXPECT_EQ(ranks.outcomes(1).size(), 1u);
  ranks.expect_all_failed(Code::DATA_LOSS, "a rank is gone");
}

TEST(LocalCollectives, StopsAndTimeLimitsAreSeen) {
  const Numbers sent = {1, 2};
  Numbers received = {0, 0};
  const auto collectives = {LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 2, &sent, &received),
                            transfer(&sent, 2, nullptr, HALYARD_NO_RANK),
                            transfer(nullptr, HALYARD_NO_RANK, &received, 2)};
  for (halyard_collective_t collective : collectives) {
    LocalRanks ranks(3);
    uint32_t stop = 0;
    LocalOutcome work;
    ranks.submit(0, collective);
    EXPECT_FALSE(ranks.group.check_stops(work)) << "nothing can stop it";
    collective.stop = &stop;
    ranks.submit(1, collective);
    EXPECT_TRUE(ranks.group.check_stops(work));
    stop = static_cast<uint32_t>(Code::CANCELLED);
    EXPECT_FALSE(ranks.group.check_stops(work));
    work.carry_out();
    EXPECT_EQ(ranks.outcomes(0).size(), 1u);
    EXPECT_EQ(ranks.outcomes(1).size(), 1u);
    ranks.expect_all_failed(Code::CANCELLED, "was stopped while it waited for rank 2");
  }
  for (halyard_collective_t collective : collectives) {
    LocalRanks ranks(3);
    LocalOutcome work;
    collective.timeout_ns = 3'600'000'000'000;
    ranks.submit(0, collective);
    EXPECT_TRUE(ranks.group.check_stops(work)) << "it has an hour";
    collective.timeout_ns = 1;
    ranks.submit(1, collective);
    for (const uint64_t begin = Tracer::now(); Tracer::now() < begin + 2;) continue;
    EXPECT_FALSE(ranks.group.check_stops(work));
    work.carry_out();
    ranks.expect_all_failed(Code::DEADLINE_EXCEEDED, "waited longer than its time limit of 0 ms for rank 2");
  }
}

// ---- splits

struct SplitRank {
  std::shared_ptr<LocalMember> child = std::make_shared<LocalMember>();
};

LocalPart split_part(const SplitRank* rank, int32_t color, int32_t key) {
  LocalPart part;
  part.color = color;
  part.key = key;
  if (rank) part.child = rank->child;
  return part;
}

TEST(LocalCollectives, SplitsOrderRanksByKeyThenByRank) {
  LocalRanks ranks(5);
  const SplitRank members[5];
  const int32_t colors[] = {7, -1, 7, 9, 7};
  const int32_t keys[] = {2, 0, 1, 0, 1};
  LocalOutcome work;
  for (uint32_t rank = 0; rank < 5; ++rank)
    ranks.group.split(
        rank, split_part(colors[rank] == -1 ? nullptr : &members[rank], colors[rank], keys[rank]), work);
  EXPECT_EQ(work.resolved.size(), 4u);
  EXPECT_FALSE(members[1].child->group);
  const std::pair<uint32_t, uint32_t> expected[] = {{0, 2}, {2, 0}, {4, 1}, {3, 0}};
  for (const auto& [rank, place] : expected) {
    ASSERT_TRUE(members[rank].child->group) << rank;
    EXPECT_EQ(members[rank].child->rank, place) << rank;
    EXPECT_EQ(members[rank].child->group->count(), rank == 3 ? 1u : 3u);
    EXPECT_EQ(members[rank].child->group->label(), rank == 3 ? "world.9" : "world.7");
  }
}

TEST(LocalCollectives, ASplitAgreesWithSplitsAlone) {
  LocalRanks ranks(3);
  const SplitRank member;
  Numbers numbers = {1, 2};
  LocalOutcome work;
  ranks.group.split(0, split_part(&member, 1, 0), work);
  ranks.group.split(1, split_part(nullptr, -1, 0), work);
  EXPECT_TRUE(work.is_empty());
  ranks.submit(2, LocalRanks::collective(HALYARD_COLLECTIVE_BROADCAST, 2, &numbers, &numbers));
  ranks.expect_all_failed(Code::INVALID_ARGUMENT,
                          "found split of rank 0 and broadcast from 0 si32 x 2 of rank 2");
  EXPECT_EQ(member.child->broken.code(), Code::INVALID_ARGUMENT) << "the channel of the split has failed too";
  EXPECT_EQ(ranks.outcomes(2).size(), 1u);
}

}  // namespace
}  // namespace halyard::hal
