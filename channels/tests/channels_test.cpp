// Channels within a process: results, refusals and recordings.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/bytes.h"
#include "hal/channel/channel.h"
#include "hal/channel/local_world.h"
#include "hal/channel/open_channels.h"
#include "hal/command/command_buffer.h"
#include "hal/driver/driver_library.h"
#include "hal/queue/host_copy.h"
#include "hal/queue/queue.h"
#include "hal/queue/wait.h"
#include "hal/registry/driver_registry.h"
#include "halyard/channel.hpp"
#include "status_testing.h"

namespace halyard::hal {
namespace {

// ---- Arithmetic ----

// Values are those of halyard/small_floats.hpp, but NaN loses its sign.
TEST(Reductions, SmallFloatsHaveOneNan) {
  const float nan = -std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(channel::round_to<channel::kFloat16>(nan), 0x7E00u);
  EXPECT_EQ(channel::round_to<channel::kBfloat16>(nan), 0x7FC0u);
  EXPECT_EQ(channel::round_to<channel::kFloat8E5M2>(nan), 0x7Eu);
  EXPECT_EQ(channel::round_to<channel::kFloat8E4M3FN>(nan), 0x7Fu);
  EXPECT_EQ(channel::round_to<channel::kFloat8E5M2FNUZ>(nan), 0x80u);
  EXPECT_EQ(channel::round_to<channel::kFloat8E4M3FNUZ>(nan), 0x80u);
  EXPECT_EQ(channel::round_to<channel::kFloat8E4M3FN>(-1e30f), 0xFFu);  // overflow keeps the sign
}

// Every element type of tensors that has a number in halyard/channel.h has a name, a size and reductions in
// the kit, and the kit has no other types.
TEST(Reductions, ElementTypesAreThoseOfTensors) {
  constexpr uint32_t HALYARD_COLLECTIVE_NONE = UINT32_MAX;
  size_t count = 0;
  const auto check = [&](uint32_t number, std::string_view text, uint32_t bits) {
    if (number == HALYARD_COLLECTIVE_NONE) return;
    ++count;
    ASSERT_LT(number, channel::kElementTypes.size()) << text;
    EXPECT_EQ(channel::kElementTypes[number].name, text);
    EXPECT_EQ(channel::element_size(number), bits / 8) << text;
    for (uint32_t reduction = HALYARD_REDUCTION_SUM; reduction <= HALYARD_REDUCTION_AVERAGE; ++reduction)
      EXPECT_TRUE(channel::internal::function_for(number, reduction)) << text;
  };
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, numpy, buffer, npy, safetensors, \
                             protocol, collective, ...)                                                \
  check(HALYARD_COLLECTIVE_##collective, text, bits);
#include "halyard/element_types.inc"
  EXPECT_EQ(count, channel::kElementTypes.size());
}

template <typename T>
std::vector<T> reduced(uint32_t element, uint32_t reduction, const std::vector<std::vector<T>>& inputs) {
  std::vector<const void*> pointers;
  for (const std::vector<T>& input : inputs) pointers.push_back(input.data());
  std::vector<T> output(inputs[0].size());
  channel::reduce(element, reduction, pointers, output.data(), output.size());
  return output;
}

TEST(Reductions, IntegersWrapAroundAndAveragesDoNot) {
  using Bytes = std::vector<int8_t>;
  EXPECT_EQ(reduced<int8_t>(HALYARD_COLLECTIVE_SINT_8, HALYARD_REDUCTION_SUM, {{100, -3}, {100, 1}}),
            (Bytes{-56, -2}));
  EXPECT_EQ(reduced<int8_t>(HALYARD_COLLECTIVE_SINT_8, HALYARD_REDUCTION_AVERAGE, {{100, -3}, {100, 0}}),
            (Bytes{100, -1}));
  EXPECT_EQ(reduced<int8_t>(HALYARD_COLLECTIVE_SINT_8, HALYARD_REDUCTION_MINIMUM, {{100, -3}, {-100, 1}}),
            (Bytes{-100, -3}));
  EXPECT_EQ(reduced<uint8_t>(HALYARD_COLLECTIVE_UINT_8, HALYARD_REDUCTION_MAXIMUM, {{100, 3}, {200, 1}}),
            (std::vector<uint8_t>{200, 3}));
  EXPECT_EQ(reduced<uint16_t>(HALYARD_COLLECTIVE_UINT_16, HALYARD_REDUCTION_PRODUCT, {{0xFFFF}, {0xFFFF}}),
            (std::vector<uint16_t>{1}));
}

TEST(Reductions, SmallFloatsAreRoundedOnce) {
  // 2048 + 1 + 1 in f16 would stay 2048 if every step were rounded.
  const auto f16 = [](float value) {
    return static_cast<uint16_t>(channel::round_to<channel::kFloat16>(value));
  };
  EXPECT_EQ(reduced<uint16_t>(HALYARD_COLLECTIVE_FLOAT_16, HALYARD_REDUCTION_SUM,
                              {{f16(2048)}, {f16(1)}, {f16(1)}}),
            (std::vector<uint16_t>{f16(2050)}));
}

TEST(Reductions, MinimumAndMaximumKeepNanAndOrderZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const uint32_t reduction : {HALYARD_REDUCTION_MINIMUM, HALYARD_REDUCTION_MAXIMUM}) {
    EXPECT_TRUE(std::isnan(reduced<float>(HALYARD_COLLECTIVE_FLOAT_32, reduction, {{1.0f}, {nan}})[0]));
    EXPECT_TRUE(std::isnan(reduced<float>(HALYARD_COLLECTIVE_FLOAT_32, reduction, {{nan}, {1.0f}})[0]));
    const bool is_minimum = reduction == HALYARD_REDUCTION_MINIMUM;
    EXPECT_EQ(std::signbit(reduced<float>(HALYARD_COLLECTIVE_FLOAT_32, reduction, {{0.0f}, {-0.0f}})[0]),
              is_minimum);
    EXPECT_EQ(std::signbit(reduced<float>(HALYARD_COLLECTIVE_FLOAT_32, reduction, {{-0.0f}, {0.0f}})[0]),
              is_minimum);
  }
}

// ---- Operations ----

constexpr uint32_t op(uint32_t kind, uint32_t reduction, uint32_t element) {
  return kind | reduction << 8 | element << 16;
}
constexpr uint32_t kSumF32 =
    op(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM, HALYARD_COLLECTIVE_FLOAT_32);

TEST(Operations, AreChecked) {
  const Place place = {1, 3};
  EXPECT_TRUE(unpack(kSumF32, 0, 8, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "operation", unpack(kSumF32 | 1u << 24, 0, 8, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "kind below 9", unpack(9, 0, 8, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "element type below 16", unpack(16u << 16, 0, 8, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected no reduction for all_gather",
               unpack(op(HALYARD_COLLECTIVE_ALL_GATHER, HALYARD_REDUCTION_SUM, 9), 0, 8, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a reduction for reduce",
               unpack(op(HALYARD_COLLECTIVE_REDUCE, 0, 9), 0, 8, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "root rank below 3",
               unpack(op(HALYARD_COLLECTIVE_BROADCAST, 0, 9), 3, 8, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "3 ranks", unpack(op(HALYARD_COLLECTIVE_ALL_TO_ALL, 0, 9), 0, 8, place));
  EXPECT_FAILS(INVALID_ARGUMENT, "source rank below 3",
               unpack(op(HALYARD_COLLECTIVE_SEND_RECV, 0, 9), 2 | 3u << 16, 8, place));
  const auto none = ASSERT_VALUE(unpack(op(HALYARD_COLLECTIVE_SEND_RECV, 0, 9), 0xFFFFFFFF, 8, place));
  EXPECT_EQ(none.target, HALYARD_NO_RANK);
  EXPECT_EQ(none.source, HALYARD_NO_RANK);
}

TEST(Operations, AllGatherCountsWhatIsSentOrWhatIsReceived) {
  const Place place = {0, 2};
  for (const uint64_t count : {4, 8}) {
    auto gather = ASSERT_VALUE(
        unpack(op(HALYARD_COLLECTIVE_ALL_GATHER, 0, HALYARD_COLLECTIVE_FLOAT_32), 0, count, place));
    const auto sizes = ASSERT_VALUE(sizes_of(gather, place, 16, 32));
    EXPECT_EQ(sizes.send, 16u);
    EXPECT_EQ(sizes.receive, 32u);
    EXPECT_EQ(gather.element_count, 4u);
  }
}

// ---- Recordings on a device ----

class Recordings : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    RegistryOptions options;
    options.folders = {HALYARD_BUILD_DIR "/lib/halyard/drivers"};
    options.use_environment = false;
    options.use_default_folders = false;
    device = ASSERT_VALUE(DriverRegistry::create(std::move(options))->open_device(GetParam()));
  }

  Ref<Buffer> buffer(const std::vector<float>& values) {
    auto made = Buffer::allocate(*device, kAnyQueue, 0, HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED,
                                 values.size() * sizeof(float));
    EXPECT_TRUE(made);
    EXPECT_TRUE((*made)->write(0, values.data(), values.size() * sizeof(float)));
    return *made;
  }
  static std::vector<float> values(const Buffer& buffer) {
    std::vector<float> values(buffer.length() / sizeof(float));
    EXPECT_TRUE(buffer.read(0, values.data(), buffer.length()));
    return values;
  }
  Ref<CommandBuffer> recording(uint32_t mode = 0, uint32_t slots = 0) {
    auto made = CommandBuffer::create(device, mode, kTransfer | kDispatchCategory, kAnyQueue, slots);
    EXPECT_TRUE(made);
    return *made;
  }
  Ref<Fence> execute(CommandBuffer& commands, std::span<const Binding> table = {}, Fence* wait = nullptr) {
    auto fence = Fence::create(device);
    EXPECT_TRUE(fence);
    const Result<> submitted = queue_execute({*device, kAnyQueue, wait, fence->get()}, commands, table);
    // Devices without workers return the failure too.
    EXPECT_TRUE(submitted || (*fence)->query().code() == submitted.error().code())
        << submitted.error().text();
    return *fence;
  }
  static Status wait(Fence& fence) {
    Fence* const fences[] = {&fence};
    return await(fences, 20'000);
  }
  static Ref<Channel> open(const Ref<LocalWorld>& world, uint32_t rank) {
    auto channel = Channel::open(world->provider(rank), {});
    EXPECT_TRUE(channel);
    return *channel;
  }

  Ref<Device> device;
};

// Two ranks in one thread: only waiting for a fence blocks.
TEST_P(Recordings, ReusableWithSlotsBetweenOtherCommands) {
  const Ref<LocalWorld> world = LocalWorld::create(2);
  Ref<Channel> channels[2];
  Ref<CommandBuffer> recorded[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    channels[rank] = open(world, rank);
    recorded[rank] = recording(0, 2);
    CommandBuffer& commands = *recorded[rank];
    ASSERT_TRUE(commands.begin_debug_group("outer"));
    ASSERT_TRUE(commands.fill({nullptr, 0, 0, 4}, 0x3F800000, 4));  // 1.0f
    ASSERT_TRUE(commands.barrier(28, 13));
    ASSERT_OK(
        commands.collective({channels[rank].get(), kSumF32, 0, {nullptr, 0, 0, 16}, {nullptr, 1, 0, 16}, 4}));
    ASSERT_TRUE(commands.barrier(28, 13));
    ASSERT_TRUE(commands.end_debug_group());
    ASSERT_TRUE(commands.copy({nullptr, 1, 0, 4}, {nullptr, 0, 12, 4}));
    ASSERT_OK(commands.finalize());
    EXPECT_EQ(commands.pieces().size(), 3u);
    EXPECT_TRUE(commands.text().contains(
        "collective channel0 all_reduce sum f32 x 4 send slot0[0, +16) receive slot1[0, +16)"))
        << commands.text();
  }
  for (int round = 0; round < 3; ++round) {
    Ref<Buffer> sends[2] = {buffer({9, 1, 2, 3}), buffer({9, 10, 20, 30})};
    Ref<Buffer> receives[2] = {buffer({0, 0, 0, 0}), buffer({0, 0, 0, 0})};
    Ref<Fence> fences[2];
    for (int rank = 0; rank < 2; ++rank) {
      const Binding table[] = {{sends[rank].get(), 0, 16}, {receives[rank].get(), 0, 16}};
      fences[rank] = execute(*recorded[rank], table);
    }
    for (int rank = 0; rank < 2; ++rank) {
      const Status status = wait(*fences[rank]);
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(values(*receives[rank]), (std::vector<float>{2, 11, 22, 33}));
      EXPECT_EQ(values(*sends[rank])[3], 2.0f);
    }
  }
}

TEST_P(Recordings, SendsAndReceivesOfOneRegionBeginTogether) {
  const Ref<LocalWorld> world = LocalWorld::create(2);
  Ref<Channel> channels[2] = {open(world, 0), open(world, 1)};
  Ref<Buffer> sends[2] = {buffer({1, 2}), buffer({3, 4})};
  Ref<Buffer> receives[2] = {buffer({0, 0}), buffer({0, 0})};
  Ref<Fence> fences[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const Ref<CommandBuffer> commands = recording(kOneShot);
    const uint32_t send = op(HALYARD_COLLECTIVE_SEND, 0, HALYARD_COLLECTIVE_FLOAT_32);
    const uint32_t receive = op(HALYARD_COLLECTIVE_RECV, 0, HALYARD_COLLECTIVE_FLOAT_32);
    ASSERT_TRUE(
        commands->collective({channels[rank].get(), send, 1 - rank, {sends[rank].get(), 0, 0, 8}, {}, 2}));
    ASSERT_TRUE(commands->collective(
        {channels[rank].get(), receive, 1 - rank, {}, {receives[rank].get(), 0, 0, 8}, 2}));
    ASSERT_TRUE(commands->finalize());
    EXPECT_EQ(commands->pieces().size(), 1u);
    fences[rank] = execute(*commands);
  }
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(wait(*fences[rank]).ok());
    EXPECT_EQ(values(*receives[rank]), rank == 0 ? (std::vector<float>{3, 4}) : (std::vector<float>{1, 2}));
  }
}

// The order is that of submission, not that in which work becomes ready.
TEST_P(Recordings, CollectivesOfOneChannelKeepTheirOrder) {
  const Ref<LocalWorld> world = LocalWorld::create(2);
  Ref<Channel> channels[2] = {open(world, 0), open(world, 1)};
  Ref<Fence> gate = *Fence::create(device);
  Ref<Buffer> results[4];
  Ref<Fence> fences[4];
  std::vector<Ref<Buffer>> inputs;
  for (int i = 0; i < 4; ++i) {
    const int rank = i / 2;
    const bool is_gather = i % 2 == 0;
    inputs.push_back(buffer({static_cast<float>(rank), 1}));
    results[i] = buffer({0, 0, 0, 0});
    const Ref<CommandBuffer> commands = recording(kOneShot);
    const uint32_t operation =
        is_gather ? op(HALYARD_COLLECTIVE_ALL_GATHER, 0, HALYARD_COLLECTIVE_FLOAT_32) : kSumF32;
    ASSERT_OK(commands->collective({channels[rank].get(),
                                    operation,
                                    0,
                                    {inputs.back().get(), 0, 0, 8},
                                    {results[i].get(), 0, 0, 16},
                                    2}));
    ASSERT_TRUE(commands->finalize());
    // On rank 0 the gather is ready long after the sum.
    fences[i] = execute(*commands, {}, i == 0 ? gate.get() : nullptr);
  }
  EXPECT_EQ(fences[3]->query().code(), Code::DEFERRED);
  ASSERT_TRUE(gate->signal());
  for (int i = 0; i < 4; ++i) {
    const Status status = wait(*fences[i]);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(values(*results[i]),
              i % 2 == 0 ? (std::vector<float>{0, 1, 1, 1}) : (std::vector<float>{1, 2, 0, 0}));
  }
}

TEST_P(Recordings, FailuresReachEveryRank) {
  const Ref<LocalWorld> world = LocalWorld::create(2);
  Ref<Channel> channels[2] = {open(world, 0), open(world, 1)};
  Ref<Buffer> bytes[2] = {buffer({1, 2}), buffer({3, 4})};
  const auto submit = [&](int rank, uint32_t operation, uint64_t count, Fence* gate) {
    const Ref<CommandBuffer> commands = recording(kOneShot);
    EXPECT_TRUE(commands->collective({channels[rank].get(),
                                      operation,
                                      0,
                                      {bytes[rank].get(), 0, 0, 8},
                                      {bytes[rank].get(), 0, 0, 8},
                                      count}));
    EXPECT_TRUE(commands->finalize());
    return execute(*commands, {}, gate);
  };
  // Rank 0's work fails before its turn.
  const Ref<Fence> gate = *Fence::create(device);
  const Ref<Fence> first = submit(0, kSumF32, 2, gate.get());
  const Ref<Fence> second = submit(1, kSumF32, 2, nullptr);
  gate->fail({Code::DATA_LOSS, "the input is gone"});
  EXPECT_EQ(wait(*first).code(), Code::DATA_LOSS);
  const Status failure = wait(*second);
  EXPECT_FAILS(DATA_LOSS, "rank 0 of channel 'default' has failed: the input is gone", failure);
  EXPECT_EQ(wait(*submit(1, kSumF32, 2, nullptr)).code(), Code::DATA_LOSS);

  // Ranks that disagree.
  const Ref<LocalWorld> other = LocalWorld::create(2);
  channels[0] = open(other, 0);
  channels[1] = open(other, 1);
  const Ref<Fence> sum = submit(0, kSumF32, 2, nullptr);
  const Ref<Fence> maximum =
      submit(1, op(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_MAXIMUM, HALYARD_COLLECTIVE_FLOAT_32), 1,
             nullptr);
  for (const Ref<Fence>& fence : {sum, maximum}) {
    const Status status = wait(*fence);
    EXPECT_FAILS(INVALID_ARGUMENT,
                 "found all_reduce sum f32 x 2 of rank 0 and all_reduce maximum f32 x 1 of rank 1", status);
  }

  // A rank that never arrives.
  const Ref<LocalWorld> late = LocalWorld::create(2);
  const Ref<ChannelProvider> provider = late->provider(0);
  provider->set_timeout(50'000'000);
  channels[0] = *Channel::open(provider, {});
  const Status status = wait(*submit(0, kSumF32, 2, nullptr));
  EXPECT_FAILS(DEADLINE_EXCEEDED,
               "all_reduce sum f32 x 2, number 0 of channel 'default', waited longer than its time "
               "limit of 50 ms for rank 1",
               status);
}

TEST_P(Recordings, ErrorsOfRecording) {
  const Ref<LocalWorld> world = LocalWorld::create(1);
  const Ref<Channel> channel = open(world, 0);
  const Ref<Buffer> bytes = buffer({1, 2, 3, 4});
  const Ref<CommandBuffer> commands = recording();
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a buffer of 16 bytes to send, found none",
               commands->collective({channel.get(), kSumF32, 0, {}, {bytes.get(), 0, 0, 16}, 4}));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "expected at least 16 bytes to receive, found a range of 12",
      commands->collective({channel.get(), kSumF32, 0, {bytes.get(), 0, 0, 16}, {bytes.get(), 0, 0, 12}, 4}));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "without common bytes",
      commands->collective({channel.get(), kSumF32, 0, {bytes.get(), 0, 0, 8}, {bytes.get(), 0, 4, 8}, 2}));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "multiples of 4 bytes",
      commands->collective({channel.get(), kSumF32, 0, {bytes.get(), 0, 2, 4}, {bytes.get(), 0, 8, 4}, 1}));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "found none",
      commands->collective({channel.get(), kSumF32, 0, {nullptr, 3, 0, 16}, {bytes.get(), 0, 0, 16}, 4}));
  auto transfers = ASSERT_VALUE(CommandBuffer::create(device, 0, kTransfer, kAnyQueue, 0));
  EXPECT_FAILS(FAILED_PRECONDITION, "categories DISPATCH",
               transfers->collective(
                   {channel.get(), kSumF32, 0, {bytes.get(), 0, 0, 16}, {bytes.get(), 0, 0, 16}, 4}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Recordings, testing::Values("local-sync", "local-task"),
                         [](const auto& given) { return std::string(given.param).replace(5, 1, "_"); });

// Memory that the host cannot map: bytes are copied through mappable memory of the device.
TEST(Staging, CopiesToMemoryThatTheHostSees) {
  auto library = ASSERT_VALUE(DriverLibrary::open(HALYARD_BUILD_DIR "/tests/drivers/halyard-driver-fake.so"));
  auto opened = ASSERT_VALUE(Device::open(library, "fake", "opaque", {}));
  const Ref<Device>& device = opened;
  const Ref<LocalWorld> world = LocalWorld::create(1);
  const Ref<Channel> channel = *Channel::open(world->provider(0), {});
  const std::vector<float> values = {1, 2, 3, 4};
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(values.data()), 16);
  Ref<Buffer> buffers[2];
  for (Ref<Buffer>& each : buffers) {
    each = ASSERT_VALUE(
        Buffer::allocate(*device, kAnyQueue, HALYARD_MEMORY_DEVICE_LOCAL, HALYARD_USAGE_DEFAULT, 16));
    ASSERT_FALSE(each->is_mappable());
  }
  const Ref<Fence> written = *Fence::create(device);
  ASSERT_TRUE(queue_update({*device, kAnyQueue, nullptr, written.get()}, bytes, *buffers[0], 0));
  auto made =
      ASSERT_VALUE(CommandBuffer::create(device, kOneShot, kTransfer | kDispatchCategory, kAnyQueue, 0));
  const Ref<CommandBuffer>& commands = made;
  ASSERT_TRUE(commands->collective(
      {channel.get(), kSumF32, 0, {buffers[0].get(), 0, 4, 8}, {buffers[1].get(), 0, 8, 8}, 2}));
  ASSERT_TRUE(commands->finalize());
  const Ref<Fence> done = *Fence::create(device);
  ASSERT_TRUE(queue_execute({*device, kAnyQueue, written.get(), done.get()}, *commands, {}));
  Fence* const fences[] = {done.get()};
  const Status status = await(fences, 20'000);
  ASSERT_TRUE(status.ok()) << status.text();
  std::vector<float> found(2);
  const Ref<Bytes> keep = Bytes::own({});
  auto read =
      ASSERT_VALUE(begin_read(*buffers[1], 8, std::span(reinterpret_cast<uint8_t*>(found.data()), 8), keep));
  Fence* const reading[] = {read.get()};
  ASSERT_TRUE(await(reading, 20'000).ok());
  EXPECT_EQ(found, (std::vector<float>{2, 3}));
}

// ---- Worlds ----

TEST(LocalWorlds, IdsNeedARankAndACount) {
  const Ref<ChannelProvider> provider = LocalWorld::create(1)->provider(0);
  Channel::Options options;
  options.id = "mine";
  EXPECT_FAILS(NOT_FOUND, "channel id 'mine' is unknown", Channel::open(provider, options));
  options.rank = 2;
  options.count = 2;
  EXPECT_FAILS(INVALID_ARGUMENT, "rank below the count of 2", Channel::open(provider, options));
  options.rank = 1;
  const auto opened = ASSERT_VALUE(Channel::open(provider, options));
  const auto place = ASSERT_VALUE(opened->place(nullptr));
  EXPECT_EQ(place.rank, 1u);
  EXPECT_EQ(place.count, 2u);
}

TEST(LocalWorlds, AProgramOpensEachChannelOnce) {
  OpenChannels channels(LocalWorld::create(1)->provider(0));
  const auto first = channels.open({});
  const auto second = channels.open({});
  Channel::Options named;
  named.group = "g";
  const auto third = channels.open(named);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, *third);
  EXPECT_EQ((*third)->name(), "channel 'default/g'");
}

TEST(LocalWorlds, SplitDoesNotWait) {
  const Ref<LocalWorld> world = LocalWorld::create(3);
  Ref<Channel> all[3];
  Ref<Channel> parts[3];
  for (uint32_t rank = 0; rank < 3; ++rank) all[rank] = *Channel::open(world->provider(rank), {});
  const int32_t colors[] = {5, -1, 5};
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const auto part = ASSERT_VALUE(all[rank]->split(colors[rank], 10 - static_cast<int32_t>(rank)));
    parts[rank] = part;
  }
  EXPECT_EQ(parts[1], nullptr);
  EXPECT_EQ(parts[0]->place(nullptr)->rank, 1u);
  EXPECT_EQ(parts[2]->place(nullptr)->rank, 0u);
  EXPECT_EQ(parts[2]->place(nullptr)->count, 2u);
  uint32_t stop = static_cast<uint32_t>(Code::CANCELLED);
  const auto lonely = ASSERT_VALUE(all[0]->split(1, 0));
  EXPECT_FAILS(CANCELLED, "stopped", lonely->place(&stop));
}

TEST(Launches, AreReadFromTheEnvironment) {
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  ::unsetenv("PMI_RANK");
  EXPECT_FALSE(detect_launch().is_launched());
  ::setenv("PMI_RANK", "2", 1);
  ::setenv("PMI_SIZE", "4", 1);
  ::setenv("MPI_LOCALRANKID", "1", 1);
  ::setenv("MPI_LOCALNRANKS", "2", 1);
  Launch launch = detect_launch();
  EXPECT_EQ(launch.launcher, "mpich");
  EXPECT_EQ(launch.rank, 2u);
  EXPECT_EQ(launch.count, 4u);
  EXPECT_EQ(launch.local_rank, 1u);
  ::setenv("PMI_RANK", "4", 1);  // not a rank of 4
  EXPECT_FALSE(detect_launch().is_launched());
  ::unsetenv("PMI_RANK");
}

}  // namespace
}  // namespace halyard::hal
