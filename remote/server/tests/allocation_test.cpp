// A client that wants all memory: huge sizes, and what is not charged but named many times.
#include <cstdio>

#include "attacks.h"
#include "halyard/driver.h"

namespace halyard::device_server {
namespace {

// What is not charged stays small: the client names things many times, or with much text. Each of these
// tests makes 800 MB of it. A sanitizer keeps 256 MB that were freed.
constexpr uint64_t kLittle = 450 << 20;

TEST(Attacks, SizesOfFrames) {
  ServerOfTest server;
  const uint32_t headers[][2] = {
      {UINT32_MAX, 0}, {8, UINT32_MAX}, {0, 0}, {remote::kMaxMessage + 1, 0}, {16, remote::kMaxData + 1}};
  for (const auto& header : headers) {
    RawClient client(server, nullptr);
    client.send_bytes(header, sizeof header);
    EXPECT_EQ(client.receive(), nullptr);  // without any answer
  }
  EXPECT_TRUE(server.becomes("connections", 0));
}

TEST(Attacks, HugeMemory) {
  ServerOfTest server;
  RawClient client(server);
  uint64_t id = 1;
  for (const uint64_t size : {kHuge, UINT64_MAX, uint64_t{1} << 40}) {
    client.create_memory(id, size, 77);
    const wire::ToClient* const answer = client.receive();
    ASSERT_TRUE(answer && answer->body_as_Done());
    EXPECT_EQ(remote::failure_of(answer->body_as_Done()->status()).code, HALYARD_RESOURCE_EXHAUSTED);
    // Work that uses it fails; reading it, too.
    client.submit_copy(100 + id, wire::Range(id, 0, 0, 0, 8), wire::Range(id, 0, 0, 8, 8));
    EXPECT_EQ(client.completion(100 + id).code, HALYARD_RESOURCE_EXHAUSTED);
    ++id;
  }
}

TEST(Attacks, MemoryOfOneClientIsLimited) {
  ServerOptions options;
  options.limits.memory = 10 << 20;
  ServerOfTest server(options);
  RawClient client(server);
  int given = 0;
  for (uint64_t id = 1; id <= 20; ++id) {
    client.create_memory(id, 1 << 20, id);
    const wire::ToClient* const answer = client.receive();
    ASSERT_TRUE(answer && answer->body_as_Done());
    given += remote::failure_of(answer->body_as_Done()->status()).code == HALYARD_OK;
  }
  EXPECT_GE(given, 8);
  EXPECT_LE(given, 10);
  // Recordings count, too.
  const std::vector<uint8_t> bytes(8 << 20);
  client.send([&](remote::Message& message) {
    flatbuffers::FlatBufferBuilder& builder = message.builder();
    const wire::Range target(0, 0, 0, 0, bytes.size());
    const auto update = wire::CreateUpdate(builder, &target, builder.CreateVector(bytes)).Union();
    const auto command = wire::CreateRecordedCommand(builder, wire::Command::Update, update);
    return wire::CreateListCreate(builder, 50, false, UINT64_MAX, 1, builder.CreateVector(&command, 1));
  });
  client.send([](remote::Message& message) {
    return wire::CreateSubmit(message.builder(), 9, UINT64_MAX, 0, 0, wire::Operation::Execute,
                              wire::CreateExecute(message.builder(), 50).Union());
  });
  EXPECT_EQ(client.completion(9).code, HALYARD_RESOURCE_EXHAUSTED);
}

TEST(Attacks, CommandsThatAreTheSameTable) {
  ServerOfTest server;
  RawClient client(server);
  client.create_memory(1, 64);
  client.send([&](remote::Message& message) {  // fails
    const auto format = message.text("embedded-elf-x86_64");
    const wire::Digest name = remote::to_wire(remote::Sha256{1});
    return wire::CreateExecutableCreate(message.builder(), 5, 3, format, &name, 100, UINT64_MAX);
  });
  await_barrier(client, 8);
  const uint64_t before = resident_bytes();
  client.send([&](remote::Message& message) {
    flatbuffers::FlatBufferBuilder& builder = message.builder();
    const std::vector<wire::Range> ranges(1000, wire::Range(1, 0, 0, 0, 64));
    const auto bindings = builder.CreateVectorOfStructs(ranges);
    const wire::Workgroups counts(1, 1, 1);
    const auto dispatch = wire::CreateDispatch(builder, 3, 0, &counts, nullptr, 0, bindings).Union();
    const auto command = wire::CreateRecordedCommand(builder, wire::Command::Dispatch, dispatch);
    const auto commands = builder.CreateVector(std::vector(100000, command));
    return wire::CreateListCreate(builder, 2, false, UINT64_MAX, 0, commands);
  });
  client.send([](remote::Message& message) {
    return wire::CreateSubmit(message.builder(), 9, UINT64_MAX, 0, 0, wire::Operation::Execute,
                              wire::CreateExecute(message.builder(), 2).Union());
  });
  EXPECT_EQ(client.completion(9).code, HALYARD_PERMISSION_DENIED);
  EXPECT_LT(resident_bytes(), before + kLittle);
}

TEST(Attacks, TextsOfFailures) {
  ServerOfTest server;
  RawClient client(server);
  await_barrier(client, 8);
  const uint64_t before = resident_bytes();
  const std::string text(8 << 20, 'x');
  for (uint64_t id = 1; id <= 100; ++id) {
    client.create_semaphore(id);
    client.send([&](remote::Message& message) {
      const auto status = wire::CreateStatus(message.builder(), HALYARD_ABORTED, message.text(text));
      return wire::CreateSemaphoreFail(message.builder(), id, status);
    });
  }
  client.submit_barrier(9, {{100, 1}}, {});
  EXPECT_EQ(client.completion(9).code, HALYARD_ABORTED);
  EXPECT_LT(resident_bytes(), before + kLittle);
}

TEST(Attacks, WorkWithManyMemories) {
  ServerOfTest server;
  RawClient client(server);
  constexpr uint64_t kMemories = 8000, kSubmissions = 13000;
  for (uint64_t id = 1; id <= kMemories; ++id) client.create_memory(id, 64);
  client.send([&](remote::Message& message) {
    flatbuffers::FlatBufferBuilder& builder = message.builder();
    std::vector<flatbuffers::Offset<wire::RecordedCommand>> commands;
    for (uint64_t id = 1; id <= kMemories; ++id) {
      const wire::Range target(id, 0, 0, 0, 64);
      const auto fill = wire::CreateFill(builder, &target, 0xFF, 1).Union();
      commands.push_back(wire::CreateRecordedCommand(builder, wire::Command::Fill, fill));
    }
    const auto list = builder.CreateVector(commands);
    return wire::CreateListCreate(builder, 20000, false, UINT64_MAX, 0, list);
  });
  client.create_semaphore(20001);
  await_barrier(client, 20002);
  const uint64_t before = resident_bytes();
  for (uint64_t i = 0; i < kSubmissions; ++i)
    client.send([&](remote::Message& message) {
      flatbuffers::FlatBufferBuilder& builder = message.builder();
      const wire::Point wait(20001, 1);
      const auto waits = builder.CreateVectorOfStructs(&wait, 1);
      return wire::CreateSubmit(builder, 30000 + i, UINT64_MAX, waits, 0, wire::Operation::Execute,
                                wire::CreateExecute(builder, 20000).Union());
    });
  await_barrier(client, 20003);
  EXPECT_LT(resident_bytes(), before + kLittle);
}

}  // namespace
}  // namespace halyard::device_server
