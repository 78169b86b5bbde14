// Channels of one process: splits before all ranks have come, failures that reach what was submitted before,
// and providers that answer wrongly.
#include "hal/channel/channel.h"

#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/work_scope.h"
#include "hal/channel/local_world.h"
#include "hal/channel/open_channels.h"
#include "status_testing.h"

namespace halyard::hal {
namespace {

// The statuses with which the collectives of a test complete, on any thread.
class Completions {
 public:
  // Submits a sum of one number at the channel's next turn.
  void submit(Channel& channel, const int32_t* send, int32_t* receive, uint64_t timeout_ns = 0,
              uint32_t kind = HALYARD_COLLECTIVE_ALL_REDUCE, const uint32_t* stop = nullptr) {
    halyard_collective_t collective = {};
    collective.struct_size = sizeof collective;
    collective.kind = kind;
    collective.reduction = HALYARD_REDUCTION_SUM;
    collective.element = HALYARD_COLLECTIVE_SINT_32;
    collective.target = collective.source = HALYARD_NO_RANK;
    collective.element_count = 1;
    collective.send = send;
    collective.receive = receive;
    collective.timeout_ns = timeout_ns;
    collective.stop = stop;
    collective.user = this;
    collective.completed = [](void* user, halyard_status_t status) {
      static_cast<Completions*>(user)->add(Status::adopt(status));
    };
    channel.at_turn(channel.draw_ticket(), [this, &channel, collective] {
      if (Status status = channel.submit(collective)) add(std::move(status));
    });
  }
  std::vector<Status> now() {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  std::vector<Status> wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(5), [&] { return all_.size() >= count; });
    return all_;
  }
  std::function<void()> on_completion;  // called in each completion

 private:
  void add(Status status) {
    if (on_completion) on_completion();
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(status));
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Status> all_;
};

std::vector<Ref<Channel>> open_all(const Ref<LocalWorld>& world, uint32_t count) {
  std::vector<Ref<Channel>> channels;
  for (uint32_t rank = 0; rank < count; ++rank) channels.push_back(*Channel::open(world->provider(rank), {}));
  return channels;
}

void expect_failure(const std::vector<Status>& found, Code code, std::string_view text) {
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code(), code);
  EXPECT_NE(found[0].text().find(text), std::string::npos) << found[0].text();
}

TEST(Channels, AFailureBeforeTheOtherRanksHaveSplitIsTold) {
  const std::vector<Ref<Channel>> channels = open_all(LocalWorld::create(2), 2);
  const int32_t sent = 5;
  int32_t received[] = {0, 0};
  Completions completions[2];
  const Ref<Channel> first = *channels[0]->split(0, 0);
  completions[0].submit(*first, &sent, &received[0]);
  EXPECT_TRUE(completions[0].now().empty());
  first->fail({Code::DATA_LOSS, "the input is gone"});
  expect_failure(completions[0].now(), Code::DATA_LOSS, "the input is gone");
  EXPECT_FALSE(first->place(nullptr));
  const Ref<Channel> second = *channels[1]->split(0, 0);
  completions[1].submit(*second, &sent, &received[1]);
  expect_failure(completions[1].now(), Code::DATA_LOSS,
                 "rank 0 of channel 'default.0' has failed: the input is gone");
}

TEST(Channels, StopsAndTimeLimitsHoldBeforeTheOtherRanksHaveSplit) {
  const int32_t sent = 5;
  for (const bool stops : {false, true}) {
    const std::vector<Ref<Channel>> channels = open_all(LocalWorld::create(2), 2);
    int32_t received[] = {0, 0};
    uint32_t stop = 0;
    Completions completions[2];
    const Ref<Channel> first = *channels[0]->split(0, 0);
    completions[0].submit(*first, &sent, &received[0], stops ? 0 : 1'000'000, HALYARD_COLLECTIVE_ALL_REDUCE,
                          &stop);
    if (stops) __atomic_store_n(&stop, static_cast<uint32_t>(Code::CANCELLED), __ATOMIC_RELAXED);
    const Code code = stops ? Code::CANCELLED : Code::DEADLINE_EXCEEDED;
    expect_failure(completions[0].wait_for(1), code,
                   stops ? "was stopped while it waited for the other ranks of the split"
                         : "waited longer than its time limit of 1 ms for the other ranks of the split");
    const Ref<Channel> second = *channels[1]->split(0, 0);
    completions[1].submit(*second, &sent, &received[1]);
    expect_failure(completions[1].now(), code, "rank 0 of channel 'default.0' has failed");
  }
}

// Rank 0 splits, splits the part again and submits a sum there, before rank 1 has come at all.
TEST(Channels, WorkOnSplitsWaitsForTheOtherRanks) {
  const std::vector<Ref<Channel>> channels = open_all(LocalWorld::create(2), 2);
  const int32_t sent[] = {5, 7};
  int32_t received[] = {0, 0};
  Completions completions[2];
  std::array<Ref<Channel>, 2> parts, parts_of_parts;
  for (const uint32_t rank : {0u, 1u}) {
    parts[rank] = ASSERT_VALUE(channels[rank]->split(3, static_cast<int32_t>(rank)));
    parts_of_parts[rank] = ASSERT_VALUE(parts[rank]->split(4, -static_cast<int32_t>(rank)));
    EXPECT_FALSE(ASSERT_VALUE(parts[rank]->split(-1, 0))) << "takes no part";
    completions[rank].submit(*parts_of_parts[rank], &sent[rank], &received[rank]);
    if (rank == 0) {
      EXPECT_TRUE(completions[0].now().empty());
    }
  }
  for (const uint32_t rank : {0u, 1u}) {
    const std::vector<Status> statuses = completions[rank].wait_for(1);
    ASSERT_EQ(statuses.size(), 1u);
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].text();
    EXPECT_EQ(received[rank], 12);
    EXPECT_EQ(ASSERT_VALUE(parts[rank]->place(nullptr)).rank, rank);
    EXPECT_EQ(ASSERT_VALUE(parts_of_parts[rank]->place(nullptr)).rank, 1 - rank) << "by its key";
    EXPECT_EQ(ASSERT_VALUE(parts[rank]->place(nullptr)).count, 2u);
  }
}

TEST(Channels, AFailureReachesTheWorkOnSplits) {
  std::vector<Ref<Channel>> channels = open_all(LocalWorld::create(2), 2);
  const int32_t sent = 5;
  int32_t received = 0;
  Completions completions;
  const Ref<Channel> part = ASSERT_VALUE(channels[0]->split(3, 0));
  const Ref<Channel> part_of_part = ASSERT_VALUE(part->split(3, 0));
  ASSERT_VALUE(part->split(-1, 0));
  completions.submit(*part, &sent, &received);
  completions.submit(*part_of_part, &sent, &received);
  EXPECT_TRUE(completions.now().empty());
  channels[1] = nullptr;  // closes the channel, for whose split rank 0 waits
  for (const Status& status : completions.wait_for(2))
    EXPECT_FAILS(ABORTED, "rank 1 has closed channel", status);
  EXPECT_FAILS(ABORTED, "rank 1 has closed channel", part->place(nullptr));
  EXPECT_FAILS(ABORTED, "rank 1 has closed channel", part_of_part->place(nullptr));
  // Later work fails in the same way.
  completions.submit(*part, &sent, &received);
  completions.submit(*channels[0], &sent, &received);
  const Ref<Channel> late = ASSERT_VALUE(part->split(1, 0));
  completions.submit(*late, &sent, &received);
  EXPECT_FALSE(ASSERT_VALUE(channels[0]->split(-1, 0)));
  const Ref<Channel> later = ASSERT_VALUE(channels[0]->split(1, 0));
  EXPECT_FAILS(ABORTED, "while splitting channel 'default'", later->place(nullptr));
  for (const Status& status : completions.wait_for(5))
    EXPECT_FAILS(ABORTED, "rank 1 has closed channel", status);
  EXPECT_EQ(completions.now().size(), 5u);
}

// The rank closes a part whose ranks are not known yet.
TEST(Channels, APartMayBeClosedBeforeItsRanksAreKnown) {
  const std::vector<Ref<Channel>> channels = open_all(LocalWorld::create(2), 2);
  Ref<Channel> part = ASSERT_VALUE(channels[0]->split(3, 0));
  part = nullptr;
  const Ref<Channel> other = ASSERT_VALUE(channels[1]->split(3, 0));
  EXPECT_EQ(ASSERT_VALUE(other->place(nullptr)).count, 2u);
}

TEST(Channels, AStopEndsTheWaitForRanks) {
  const std::vector<Ref<Channel>> channels = open_all(LocalWorld::create(2), 2);
  const auto stop = static_cast<uint32_t>(Code::CANCELLED);
  const uint32_t runs = 0;
  const Ref<Channel> part = ASSERT_VALUE(channels[0]->split(3, 0));
  EXPECT_FAILS(CANCELLED, "stopped while the other ranks of a split were awaited; while the ranks of channel",
               part->place(&stop));
  // Its turn comes after a collective that has not begun.
  const uint64_t ticket = channels[1]->draw_ticket();
  const Ref<Channel> waiting = ASSERT_VALUE(channels[1]->split(3, 0));
  EXPECT_FAILS(CANCELLED, "waited for its turn to be split off", waiting->place(&stop));
  waiting->fail({Code::DATA_LOSS, "has no effect on a channel that is not open"});
  std::thread turn([&] { channels[1]->at_turn(ticket, [] {}); });
  EXPECT_EQ(ASSERT_VALUE(waiting->place(&runs)).rank, 1u);
  EXPECT_EQ(ASSERT_VALUE(part->place(&runs)).rank, 0u);
  turn.join();
}

TEST(Channels, ErrorsOfOpening) {
  const Ref<ChannelProvider> provider = LocalWorld::create(2)->provider(1);
  EXPECT_FAILS(NOT_FOUND, "channel id 'x' is unknown", Channel::open(provider, {.id = "x"}));
  EXPECT_FAILS(NOT_FOUND, "while opening channel 'x/g'",
               Channel::open(provider, {.id = "x", .group = "g", .rank = 0}));
  EXPECT_FAILS(NOT_FOUND, "an id with the rank and count", Channel::open(provider, {.id = "x", .count = 1}));
  EXPECT_FAILS(INVALID_ARGUMENT, "a rank below the count of 2, found rank 2",
               Channel::open(provider, {.rank = 2}));
  EXPECT_FAILS(INVALID_ARGUMENT, "a rank below the count of 1, found rank 1",
               Channel::open(provider, {.count = 1}));
  const auto place =
      ASSERT_VALUE(ASSERT_VALUE(Channel::open(provider, {.id = "x", .rank = 0, .count = 3}))->place(nullptr));
  EXPECT_EQ(place.rank, 0u);
  EXPECT_EQ(place.count, 3u);
}

// A program opens its channel in each call; an open channel is found again by all of its options.
TEST(Channels, AreOpenedOnce) {
  OpenChannels open(LocalWorld::create(2)->provider(1));
  const auto first = ASSERT_VALUE(open.open({}));
  EXPECT_EQ(ASSERT_VALUE(open.open({})).get(), first.get());
  const Channel::Options others[] = {
      {.group = "g"}, {.rank = 0}, {.count = 3}, {.id = "x", .rank = 0, .count = 1}};
  for (const Channel::Options& options : others) {
    const auto other = ASSERT_VALUE(open.open(options));
    EXPECT_NE(other.get(), first.get());
    EXPECT_EQ(ASSERT_VALUE(open.open(options)).get(), other.get());
  }
  EXPECT_FAILS(NOT_FOUND, "channel id 'y' is unknown", open.open({.id = "y"}));
}

// The watcher of time limits drops the last reference to its world.
TEST(Channels, AWorldMayEndInACompletion) {
  const int32_t sent = 5;
  int32_t received = 0;
  Completions completions;
  Ref<Channel> channel = *Channel::open(LocalWorld::create(2)->provider(0), {});
  completions.on_completion = [&] { channel = nullptr; };
  completions.submit(*channel, &sent, &received, 1'000'000);
  const std::vector<Status> statuses = completions.wait_for(1);
  ASSERT_EQ(statuses.size(), 1u);
  EXPECT_FAILS(DEADLINE_EXCEEDED, "time limit of 1 ms for rank 1", statuses[0]);
}

TEST(Channels, SlicesOfATrackDoNotOverlap) {
  const Ref<Tracer> tracer = *Tracer::create("");
  struct Slice {
    std::string name;
    uint64_t begin, end;
  };
  std::vector<Slice> slices;
  tracer->observe(
      [&](const TracedSlice& slice) { slices.push_back({std::string(slice.name), slice.begin, slice.end}); });
  const Ref<Channel> channel = *Channel::open(LocalWorld::create(1)->provider(0), {});
  channel->trace(nullptr, "unseen", 1, 2);
  channel->trace(tracer.get(), "first", 100, 200);
  channel->trace(tracer.get(), "second", 150, 180);
  channel->trace(tracer.get(), "third", 150, 300);
  ASSERT_OK(tracer->finish());
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0].begin, 100u);
  EXPECT_EQ(slices[0].end, 200u);
  EXPECT_EQ(slices[1].begin, 200u);
  EXPECT_EQ(slices[1].end, 200u);
  EXPECT_EQ(slices[2].begin, 200u);
  EXPECT_EQ(slices[2].end, 300u);
}

// ---- a provider that answers wrongly

struct halyard_channel_provider* const kNobody = nullptr;

// The table of a world of one rank, for tests to change.
halyard_channel_table_t scripted_table() {
  static int end = 0;  // the address is the handle of every channel
  halyard_channel_table_t table = {};
  table.struct_size = sizeof table;
  table.shutdown = [](halyard_channel_provider_t*) {};
  table.channel_open = [](halyard_channel_provider_t, const halyard_channel_open_args_t*,
                          halyard_provider_channel_t* out) {
    *out = reinterpret_cast<halyard_provider_channel_t>(&end);
    return halyard_status_t{};
  };
  table.channel_split = [](halyard_provider_channel_t, int32_t, int32_t, halyard_provider_channel_t* out) {
    *out = reinterpret_cast<halyard_provider_channel_t>(&end);
    return halyard_status_t{};
  };
  table.channel_place = [](halyard_provider_channel_t, const uint32_t*, uint32_t* rank, uint32_t* count) {
    *rank = *count = 1;
    return halyard_status_t{};
  };
  table.channel_close = [](halyard_provider_channel_t) {};
  return table;
}

Ref<ChannelProvider> scripted(const halyard_channel_table_t& table) {
  return ChannelProvider::built_in("scripted", table, kNobody, LocalWorld::create(1));
}

TEST(Channels, AnswersOfProvidersAreChecked) {
  halyard_channel_table_t table = scripted_table();
  const Ref<Channel> channel = ASSERT_VALUE(Channel::open(scripted(table), {}));
  EXPECT_FAILS(INTERNAL, "'scripted' says that this is rank 1 of the 1 ranks of channel 'default'",
               channel->place(nullptr));
  table.channel_open = [](halyard_channel_provider_t, const halyard_channel_open_args_t*,
                          halyard_provider_channel_t*) { return halyard_status_t{}; };
  EXPECT_FAILS(INTERNAL, "'scripted' opened channel 'default/g' but gave no handle",
               Channel::open(scripted(table), {.group = "g"}));
  table = scripted_table();
  table.channel_split = [](halyard_provider_channel_t, int32_t, int32_t, halyard_provider_channel_t*) {
    return Status(Code::RESOURCE_EXHAUSTED, "no more channels").release();
  };
  table.channel_fail = [](halyard_provider_channel_t, halyard_status_t status) {
    static_cast<void>(Status::adopt(status));
  };
  const Ref<Channel> full = ASSERT_VALUE(Channel::open(scripted(table), {}));
  const Ref<Channel> part = ASSERT_VALUE(full->split(1, 0));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "no more channels; while splitting channel 'default'",
               part->place(nullptr));
  EXPECT_EQ(part->submit({}).code(), Code::RESOURCE_EXHAUSTED);
  const Ref<Channel> part_of_part = ASSERT_VALUE(part->split(1, 0));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "while splitting channel 'default.0'", part_of_part->place(nullptr));
  full->fail({Code::ABORTED, "is passed on"});
  part->fail({Code::ABORTED, "has no effect on a channel that could not be opened"});
}

}  // namespace
}  // namespace halyard::hal
