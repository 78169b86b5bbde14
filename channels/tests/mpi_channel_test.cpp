// Channels of the MPI provider, between ranks of one process: what a channel does when messages arrive late
// or in between, and when a rank fails, stops or closes the channel.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "channel.h"
#include "collective.h"
#include "direct.h"
#include "halyard/channel.hpp"
#include "network.h"
#include "split.h"

namespace halyard::mpi::testing {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// A collective of bytes, and its end.
struct Transfer {
  explicit Transfer(uint64_t size = 8, uint8_t value = 0) : send(size, value), receive(size) {}

  std::vector<uint8_t> send, receive;
  uint64_t timeout_ns = 0;
  uint32_t stop = 0;
  int ends = 0;
  Failure failure;
};

class Rank {
 public:
  Rank(int rank, uint32_t count) {
    process.peers.begin(static_cast<uint32_t>(rank), count);
    fabric.process = &process;
    fabric.comm = rank;
    fabric.rank = static_cast<uint32_t>(rank);
    fabric.count = count;
    for (uint32_t i = 0; i < count; ++i) fabric.world_ranks.push_back(i);
    fabric.root = Channel::root_of(fabric);
  }

  Channel& root() { return *fabric.root; }
  // A channel of all ranks.
  Channel* open() { return split(root(), 0); }
  Channel* split(Channel& base, int32_t color) {
    Channel* child = nullptr;
    if (color != -1) child = open_.emplace_back(std::make_unique<Channel>(fabric, base.child_label())).get();
    base.add(make_split(base, color, static_cast<int32_t>(fabric.rank), child, {}));
    return child;
  }
  void all_reduce(Channel& channel, Transfer& transfer) {
    halyard_collective_t collective = describe(HALYARD_COLLECTIVE_ALL_REDUCE, transfer);
    collective.reduction = HALYARD_REDUCTION_SUM;
    channel.add(make_collective(channel, collective));
  }
  void all_gather(Channel& channel, Transfer& transfer) {
    channel.add(make_collective(channel, describe(HALYARD_COLLECTIVE_ALL_GATHER, transfer)));
  }
  void send(Channel& channel, Transfer& transfer, uint32_t target) {
    halyard_collective_t collective = describe(HALYARD_COLLECTIVE_SEND, transfer);
    collective.target = target;
    channel.add(make_direct(channel, collective));
  }
  void receive(Channel& channel, Transfer& transfer, uint32_t source) {
    halyard_collective_t collective = describe(HALYARD_COLLECTIVE_RECV, transfer);
    collective.source = source;
    channel.add(make_direct(channel, collective));
  }
  // As the job does.
  void close(Channel* channel) {
    const auto found =
        std::find_if(open_.begin(), open_.end(), [&](const auto& each) { return each.get() == channel; });
    channel->close();
    closing_.push_back(std::move(*found));
    open_.erase(found);
  }
  size_t closing() const { return closing_.size(); }
  bool advance() {
    bool moved = false;
    for (size_t i = 0; i < process.channels.size(); ++i)
      if (process.channels[i]->has_work() && process.channels[i]->advance()) moved = true;
    for (const std::unique_ptr<Channel>& channel : closing_) channel->advance();
    std::erase_if(closing_, [](const std::unique_ptr<Channel>& channel) { return channel->is_idle(); });
    for (const Process::Completion& each : std::exchange(process.completions, {})) {
      auto& transfer = *static_cast<Transfer*>(each.collective.user);
      ++transfer.ends;
      transfer.failure = each.failure;
      moved = true;
    }
    return moved;
  }

  Process process;
  Fabric fabric;

 private:
  static halyard_collective_t describe(uint32_t kind, Transfer& transfer) {
    halyard_collective_t collective = {};
    collective.struct_size = sizeof collective;
    collective.kind = kind;
    collective.element = HALYARD_COLLECTIVE_UINT_8;
    collective.target = collective.source = HALYARD_NO_RANK;
    collective.element_count = transfer.send.size();
    collective.send = transfer.send.data();
    collective.receive = transfer.receive.data();
    collective.timeout_ns = transfer.timeout_ns;
    collective.stop = &transfer.stop;
    collective.user = &transfer;
    return collective;
  }

  std::vector<std::unique_ptr<Channel>> open_;
  std::vector<std::unique_ptr<Channel>> closing_;
};

class MpiChannels : public ::testing::Test {
 protected:
  void begin(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) ranks_.push_back(std::make_unique<Rank>(static_cast<int>(i), count));
  }
  void end() { ranks_.clear(); }
  Rank& rank(uint32_t number) { return *ranks_[number]; }
  // Until nothing moves.
  void run() {
    int quiet = 0;
    for (int i = 0; i < 1000 && quiet < 3; ++i) {
      bool moved = false;
      for (const std::unique_ptr<Rank>& each : ranks_) moved = each->advance() || moved;
      quiet = moved ? 0 : quiet + 1;
    }
    EXPECT_EQ(quiet, 3) << "it moves forever";
  }
  // A channel of all ranks, by rank.
  std::vector<Channel*> open() {
    std::vector<Channel*> channels;
    for (const std::unique_ptr<Rank>& each : ranks_) channels.push_back(each->open());
    run();
    for (const Channel* channel : channels) EXPECT_TRUE(channel->is_open());
    return channels;
  }
  static int number_of(const Channel& channel) { return channel.tag(Tag::header) / kTags; }
  static void expect_failure(const Transfer& transfer, halyard_status_code_t code, const std::string& text) {
    EXPECT_EQ(transfer.ends, 1);
    EXPECT_EQ(transfer.failure.code, code) << transfer.failure.text;
    EXPECT_NE(transfer.failure.text.find(text), std::string::npos) << transfer.failure.text;
  }

  Network network_;

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// The split that opens the channel waits for the other rank, and has a pointer to the channel.
TEST_F(MpiChannels, AChannelThatFailsBeforeItIsOpenOutlivesItsSplit) {
  begin(2);
  Channel* const channel = rank(0).open();
  Transfer transfer;
  transfer.timeout_ns = kSecond;
  rank(0).all_reduce(*channel, transfer);
  run();
  network_.time += 2 * kSecond;
  run();
  expect_failure(transfer, HALYARD_DEADLINE_EXCEEDED, "waited longer than its time limit of 1000 ms");
  rank(0).close(channel);
  run();
  ASSERT_EQ(rank(0).closing(), 1u) << "rank 1 has not come";
  rank(1).open();
  run();
  EXPECT_EQ(rank(0).closing(), 0u);
}

TEST_F(MpiChannels, AChannelThatFailsBeforeItIsOpenGoesWithItsBase) {
  begin(2);
  Channel* const channel = rank(0).open();
  channel->fail_soon({HALYARD_DATA_LOSS, "the input is gone"});
  run();
  rank(0).close(channel);
  rank(1).root().fail_soon({HALYARD_ABORTED, "the base fails"});
  run();
  EXPECT_EQ(rank(0).closing(), 0u);
}

// Both first messages arrive after the first receive has been tested, and before the second one is.
TEST_F(MpiChannels, ReceivesFromOneRankGetTheirBytesInOrder) {
  for (const uint64_t size : {uint64_t{100}, uint64_t{20'000}}) {
    begin(2);
    const std::vector<Channel*> channels = open();
    Transfer sent[] = {Transfer(size, 1), Transfer(size, 2)};
    Transfer received[] = {Transfer(size), Transfer(size)};
    for (Transfer& transfer : received) rank(1).receive(*channels[1], transfer, 0);
    run();
    network_.hold(0, 1);
    for (Transfer& transfer : sent) rank(0).send(*channels[0], transfer, 1);
    rank(0).advance();
    int tests = 0;
    network_.before_test = [&](int tester) {
      if (tester == 1 && ++tests == 2) network_.release(0, 1);
    };
    rank(1).advance();
    EXPECT_GE(tests, 2);
    network_.before_test = nullptr;
    run();
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(sent[i].ends, 1);
      EXPECT_EQ(received[i].ends, 1);
      EXPECT_FALSE(received[i].failure) << received[i].failure.text;
      EXPECT_TRUE(received[i].receive == sent[i].send) << "receive " << i << " has other bytes";
    }
    end();
  }
}

// Rank 0 closes the channel of ranks 0 and 1, whose number the channel of ranks 0 and 2 gets. Then rank 1,
// which has not closed its end, fails.
TEST_F(MpiChannels, ANoticeOfAFormerChannelIsIgnored) {
  begin(3);
  Channel* former[3];
  Channel* base[3];
  for (uint32_t i = 0; i < 3; ++i) former[i] = rank(i).split(rank(i).root(), i == 2 ? -1 : 0);
  for (uint32_t i = 0; i < 3; ++i) base[i] = rank(i).split(rank(i).root(), i == 1 ? -1 : 0);
  run();
  const int number = number_of(*former[0]);
  rank(0).close(former[0]);
  run();
  Channel* const here = rank(0).split(*base[0], 0);
  Channel* const there = rank(2).split(*base[2], 0);
  run();
  ASSERT_EQ(number_of(*here), number);
  former[1]->fail_soon({HALYARD_DATA_LOSS, "the input is gone"});
  run();
  Transfer first, second;
  rank(0).all_reduce(*here, first);
  rank(2).all_reduce(*there, second);
  run();
  EXPECT_EQ(first.ends, 1);
  EXPECT_FALSE(first.failure) << first.failure.text;
  EXPECT_FALSE(second.failure) << second.failure.text;
  // It still learns of the failures of its own ranks.
  Transfer third;
  rank(0).all_reduce(*here, third);
  there->fail_soon({HALYARD_ABORTED, "rank 2 fails"});
  run();
  expect_failure(third, HALYARD_ABORTED, "rank 2 fails");
}

TEST_F(MpiChannels, AClosedChannelKeepsItsNumberWhileSplitsWait) {
  begin(2);
  const std::vector<Channel*> base = open();
  const int number = number_of(*base[0]);
  Channel* other[2];
  Transfer transfers[] = {Transfer(8, 1), Transfer(8, 2)};
  for (uint32_t i = 0; i < 2; ++i) {
    for (int splits = 0; splits < 4; ++splits) rank(i).split(*base[i], -1);
    rank(i).close(base[i]);
    other[i] = rank(i).open();
    rank(i).all_reduce(*other[i], transfers[i]);
  }
  run();
  EXPECT_NE(number_of(*other[0]), number);
  for (const Transfer& transfer : transfers) {
    EXPECT_FALSE(transfer.failure) << transfer.failure.text;
    EXPECT_EQ(transfer.receive, std::vector<uint8_t>(8, 3));
  }
  EXPECT_EQ(rank(0).closing(), 0u);
  EXPECT_EQ(number_of(*open()[0]), number) << "the number is free again";
}

TEST_F(MpiChannels, AClosedChannelLearnsOfFailuresWhileSplitsWait) {
  begin(2);
  const std::vector<Channel*> base = open();
  Channel* const child = rank(0).split(*base[0], 0);
  rank(0).close(base[0]);
  base[1]->fail_soon({HALYARD_DATA_LOSS, "the input is gone"});
  run();
  EXPECT_EQ(child->broken().code, HALYARD_DATA_LOSS);
  EXPECT_EQ(rank(0).closing(), 0u);
}

TEST_F(MpiChannels, AClosedChannelEndsItsCollectives) {
  begin(2);
  const std::vector<Channel*> channels = open();
  Transfer first(8, 1), second(8, 2);
  rank(0).all_reduce(*channels[0], first);
  rank(0).close(channels[0]);
  run();
  rank(1).all_reduce(*channels[1], second);
  run();
  EXPECT_EQ(first.receive, std::vector<uint8_t>(8, 3));
  EXPECT_EQ(second.receive, first.receive);
  EXPECT_EQ(rank(0).closing(), 0u);
}

TEST_F(MpiChannels, AFailureBeforeTheChannelIsOpenIsTold) {
  for (const bool closes : {false, true}) {
    begin(2);
    Channel* const first = rank(0).open();
    first->fail_soon({HALYARD_DATA_LOSS, "the input is gone"});
    run();
    if (closes) rank(0).close(first);
    Channel* const second = rank(1).open();
    Transfer transfer;
    rank(1).all_reduce(*second, transfer);
    run();
    expect_failure(transfer, HALYARD_DATA_LOSS, "the input is gone");
    EXPECT_EQ(rank(0).closing(), 0u);
    end();
  }
}

TEST_F(MpiChannels, StopsAndTimeLimitsHoldBehindASplit) {
  for (const bool stops : {false, true}) {
    begin(2);
    const std::vector<Channel*> channels = open();
    Channel* const child = rank(0).split(*channels[0], 0);
    Transfer behind, within;
    if (!stops) behind.timeout_ns = kSecond;
    rank(0).all_reduce(*channels[0], behind);
    rank(0).all_reduce(*child, within);
    run();
    EXPECT_EQ(behind.ends, 0);
    if (stops) behind.stop = HALYARD_CANCELLED;
    network_.time += 2 * kSecond;
    run();
    expect_failure(
        behind, stops ? HALYARD_CANCELLED : HALYARD_DEADLINE_EXCEEDED,
        stops ? "was stopped while it waited behind a split which waits for rank 1"
              : "waited longer than its time limit of 1000 ms behind a split which waits for rank 1");
    expect_failure(within, behind.failure.code, behind.failure.text);
    end();
  }
}

TEST_F(MpiChannels, StopsAndTimeLimitsHoldInAChannelThatIsNotOpen) {
  begin(2);
  Channel* const channel = rank(0).open();
  Transfer first, second;
  second.timeout_ns = kSecond;
  rank(0).all_reduce(*channel, first);
  rank(0).all_reduce(*channel, second);
  network_.time += 2 * kSecond;
  run();
  expect_failure(second, HALYARD_DEADLINE_EXCEEDED, " behind all_reduce sum ui8 x 8, number 0,");
  expect_failure(first, HALYARD_DEADLINE_EXCEEDED, second.failure.text);
}

// A notice longer than MPI sends at once.
TEST_F(MpiChannels, ALongNoticeIsAWorkOfTheChannel) {
  begin(2);
  const std::vector<Channel*> channels = open();
  Transfer transfer;
  rank(0).all_reduce(*channels[0], transfer);
  run();
  network_.hold_bytes();
  channels[1]->fail_soon({HALYARD_DATA_LOSS, std::string(12'000, 'x')});
  run();
  EXPECT_TRUE(channels[1]->has_work()) << "the notice is being sent";
  EXPECT_EQ(transfer.ends, 0);
  // A channel is closed although the notice is arriving.
  rank(0).close(channels[0]);
  run();
  EXPECT_EQ(rank(0).closing(), 1u);
  network_.move_bytes();
  run();
  EXPECT_FALSE(channels[1]->has_work());
  expect_failure(transfer, HALYARD_DATA_LOSS, "xxx");
  EXPECT_EQ(rank(0).closing(), 0u);
}

TEST_F(MpiChannels, AChannelMayBeClosedWhileANoticeArrives) {
  begin(2);
  const std::vector<Channel*> channels = open();
  network_.hold_bytes();
  channels[1]->fail_soon({HALYARD_DATA_LOSS, std::string(12'000, 'x')});
  run();
  rank(0).close(channels[0]);
  run();
  EXPECT_EQ(rank(0).closing(), 1u) << "its memory is being written";
  network_.move_bytes();
  run();
  EXPECT_EQ(rank(0).closing(), 0u);
}

// The memory of a collective belongs to the host again when the collective completes.
TEST_F(MpiChannels, ACollectiveThatFailsOutlastsBytesThatArrive) {
  begin(2);
  const std::vector<Channel*> channels = open();
  network_.hold_bytes();
  Transfer transfers[] = {Transfer(100'000, 1), Transfer(100'000, 2)};
  for (Transfer& transfer : transfers) transfer.receive.resize(200'000);
  rank(0).all_gather(*channels[0], transfers[0]);
  rank(1).all_gather(*channels[1], transfers[1]);
  run();
  channels[0]->fail_soon({HALYARD_DATA_LOSS, "the input is gone"});
  run();
  network_.time += 100 * kSecond;
  run();
  EXPECT_EQ(transfers[0].ends, 0) << "rank 1 is sending";
  EXPECT_TRUE(channels[1]->has_work());
  network_.move_bytes();
  run();
  for (const Transfer& transfer : transfers) expect_failure(transfer, HALYARD_DATA_LOSS, "the input is gone");
  EXPECT_FALSE(channels[0]->has_work());
  EXPECT_FALSE(channels[1]->has_work());
}

// Rank 0 has all votes and opens the channel. Rank 1 lacks the vote of rank 2 when its base fails.
TEST_F(MpiChannels, ABaseThatFailsDuringAVoteFailsTheChannelOfTheOthers) {
  begin(3);
  std::vector<Channel*> children;
  for (uint32_t i = 0; i < 3; ++i) children.push_back(rank(i).open());
  network_.hold(0, 2);
  for (uint32_t i = 0; i < 3; ++i) rank(i).advance();  // proposals
  network_.hold(2, 1);
  network_.release(0, 2);
  run();
  ASSERT_TRUE(children[0]->is_open());
  ASSERT_FALSE(children[1]->is_open());
  Transfer transfer;
  rank(0).all_reduce(*children[0], transfer);
  rank(1).root().fail_soon({HALYARD_DATA_LOSS, "the input is gone"});
  run();
  expect_failure(transfer, HALYARD_DATA_LOSS, "the input is gone");
  EXPECT_EQ(children[1]->broken().code, HALYARD_DATA_LOSS);
  const auto number = static_cast<size_t>(number_of(*children[0]));
  EXPECT_TRUE(rank(1).fabric.taken.test(number)) << "others may still send to the channel";
}

TEST_F(MpiChannels, AnErrorOfMpiLeavesNothingBehind) {
  begin(2);
  const std::vector<Channel*> channels = open();
  Transfer first, second;
  rank(0).all_reduce(*channels[0], first);
  run();
  rank(1).all_reduce(*channels[1], second);
  rank(1).advance();
  network_.fail_next_test(0);
  run();
  expect_failure(first, HALYARD_UNAVAILABLE, "MPI_Testsome: an error of the network");
  rank(0).close(channels[0]);
  run();
  EXPECT_EQ(rank(0).closing(), 0u);
}

}  // namespace
}  // namespace halyard::mpi::testing
