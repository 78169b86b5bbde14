// Offsets, lengths and sizes that are wrong.
#include "attacks.h"
#include "halyard/driver.h"

namespace halyard::device_server {
namespace {

TEST(Attacks, RangesOutsideOfMemory) {
  ServerOfTest server;
  const std::pair<uint64_t, uint64_t> ranges[] = {{0, 65},         {64, 1},         {65, 0},
                                                  {UINT64_MAX, 1}, {1, UINT64_MAX}, {UINT64_MAX - 7, 8}};
  for (const auto& [offset, length] : ranges) {
    {
      RawClient client(server);
      client.create_memory(1, 64);
      client.read(1, 1, offset, length);
      expect_refused(client, HALYARD_OUT_OF_RANGE, "64 bytes");
    }
    RawClient client(server);
    client.create_memory(1, 64);
    client.create_memory(2, 64);
    client.submit_copy(9, wire::Range(1, 0, 0, offset, length), wire::Range(2, 0, 0, 0, length));
    if (length == 0) continue;
    EXPECT_EQ(client.completion(9).code, HALYARD_OUT_OF_RANGE) << offset << ", " << length;
    client.submit_copy(10, wire::Range(1, 0, 0, 0, length), wire::Range(2, 0, 0, offset, length));
    EXPECT_EQ(client.completion(10).code, HALYARD_OUT_OF_RANGE) << offset << ", " << length;
  }
}

TEST(Attacks, WritesOutsideOfMemory) {
  ServerOfTest server;
  for (const uint64_t offset : {uint64_t{57}, uint64_t{64}, UINT64_MAX, UINT64_MAX - 3}) {
    RawClient client(server);
    client.create_memory(1, 64);
    const uint8_t bytes[8] = {};
    client.send(
        [&](remote::Message& message) { return wire::CreateMemoryWrite(message.builder(), 1, offset); },
        bytes);
    expect_refused(client, HALYARD_OUT_OF_RANGE, "64 bytes");
  }
}

TEST(Attacks, CommandsOutsideOfMemoryAndTable) {
  ServerOfTest server;
  // A fill of a slot: the table's entry is too small, or there is no table.
  for (const bool has_table : {true, false}) {
    RawClient client(server);
    client.create_memory(1, 64);
    client.send([](remote::Message& message) {
      flatbuffers::FlatBufferBuilder& builder = message.builder();
      const wire::Range target(0, 0, 0, 0, 4096);
      const auto fill = wire::CreateFill(builder, &target, 0xFF, 1).Union();
      const auto command = wire::CreateRecordedCommand(builder, wire::Command::Fill, fill);
      return wire::CreateListCreate(builder, 2, false, UINT64_MAX, 1, builder.CreateVector(&command, 1));
    });
    client.send([&](remote::Message& message) {
      flatbuffers::FlatBufferBuilder& builder = message.builder();
      const wire::Binding entry(1, 0, 64);
      const auto table = builder.CreateVectorOfStructs(&entry, has_table ? 1 : 0);
      return wire::CreateSubmit(builder, 9, UINT64_MAX, 0, 0, wire::Operation::Execute,
                                wire::CreateExecute(builder, 2, table).Union());
    });
    const remote::Failure failure = client.completion(9);
    EXPECT_EQ(failure.code, has_table ? HALYARD_OUT_OF_RANGE : HALYARD_INVALID_ARGUMENT) << failure.message;
  }
  RawClient client(server);
  client.send([](remote::Message& message) {
    return wire::CreateListCreate(message.builder(), 2, false, UINT64_MAX, UINT32_MAX);
  });
  expect_refused(client, HALYARD_INVALID_ARGUMENT, "binding table");
}

TEST(Attacks, UpdatesWithOtherSizesThanTheirBytes) {
  ServerOfTest server;
  RawClient client(server);
  client.create_memory(1, 64);
  const uint8_t bytes[8] = {};
  client.send(
      [](remote::Message& message) {
        flatbuffers::FlatBufferBuilder& builder = message.builder();
        const wire::Range target(1, 0, 0, 0, 64);
        return wire::CreateSubmit(builder, 9, UINT64_MAX, 0, 0, wire::Operation::Update,
                                  wire::CreateUpdate(builder, &target).Union());
      },
      bytes);
  expect_refused(client, HALYARD_INVALID_ARGUMENT, "an update of 64 bytes comes with 8 bytes");
}

}  // namespace
}  // namespace halyard::device_server
