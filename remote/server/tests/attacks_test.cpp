// Attacks by a client that may connect: each kind of hole that servers of devices have had, and more.
#include <sys/syscall.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>

#include "halyard/driver.h"
#include "raw_client.h"

namespace halyard::device_server {
namespace {

constexpr uint64_t kHuge = uint64_t{1} << 62;

uint64_t resident_bytes() {
  unsigned long pages = 0, resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (std::fscanf(file, "%lu %lu", &pages, &resident) != 2) resident = 0;
  std::fclose(file);
  return resident * 4096;
}

void expect_refused(RawClient& client, halyard_status_code_t code, const char* text) {
  const remote::Failure refusal = client.refusal();
  EXPECT_EQ(refusal.code, code) << refusal.message;
  EXPECT_NE(refusal.message.find(text), std::string::npos) << refusal.message;
}

// ---- Pointers as handles

TEST(Attacks, AddressesAreNoHandles) {
  ServerOfTest server;
  int on_stack = 0;
  for (const uint64_t number : {reinterpret_cast<uint64_t>(&on_stack), reinterpret_cast<uint64_t>(&server),
                                uint64_t{8}, UINT64_MAX}) {
    RawClient client(server);
    client.read(1, number, 0, 8);
    expect_refused(client, HALYARD_INVALID_ARGUMENT, "there is no memory");
  }
}

TEST(Attacks, NumbersOfOneClientAreNotThoseOfAnother) {
  ServerOfTest server;
  RawClient first(server), second(server);
  first.create_memory(7, 64);
  first.read(1, 7, 0, 64);
  ASSERT_TRUE(first.receive());
  second.read(1, 7, 0, 64);
  expect_refused(second, HALYARD_INVALID_ARGUMENT, "there is no memory 7");
  // The first client goes on.
  first.read(2, 7, 0, 64);
  const wire::ToClient* const answer = first.receive();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->body_as_Data());
}

TEST(Attacks, HandlesOfAnotherKind) {
  ServerOfTest server;
  RawClient client(server);
  client.create_semaphore(5);
  client.read(1, 5, 0, 8);
  expect_refused(client, HALYARD_INVALID_ARGUMENT, "there is no memory 5");
}

TEST(Attacks, DestroyedHandlesAndNumbersUsedTwice) {
  ServerOfTest server;
  {
    RawClient client(server);
    client.create_memory(5, 64);
    for (int i = 0; i < 2; ++i)
      client.send([](remote::Message& message) { return wire::CreateMemoryDestroy(message.builder(), 5); });
    expect_refused(client, HALYARD_INVALID_ARGUMENT, "there is no memory 5");
  }
  {
    RawClient client(server);
    client.create_memory(5, 64);
    client.create_memory(5, 64);
    expect_refused(client, HALYARD_INVALID_ARGUMENT, "memory 5 exists already");
  }
  // In lists.
  const auto destroy = [](RawClient& client, const std::vector<uint64_t>& semaphores,
                          const std::vector<uint64_t>& memories) {
    client.send([&](remote::Message& message) {
      const auto first = message.builder().CreateVector(semaphores);
      const auto second = message.builder().CreateVector(memories);
      return wire::CreateDestroy(message.builder(), first, second);
    });
  };
  {
    RawClient client(server);
    client.create_semaphore(4);
    client.create_memory(5, 64);
    client.send([](remote::Message& message) { return wire::CreateDestroy(message.builder()); });
    destroy(client, {4}, {5});
    destroy(client, {}, {5});
    expect_refused(client, HALYARD_INVALID_ARGUMENT, "there is no memory 5");
  }
  {
    RawClient client(server);
    client.create_semaphore(4);
    destroy(client, {4, 4}, {});
    expect_refused(client, HALYARD_INVALID_ARGUMENT, "there is no semaphore 4");
  }
  for (const std::vector<wire::Point>& created :
       {std::vector<wire::Point>{{4, 0}, {4, 0}}, std::vector<wire::Point>{{0, 0}}}) {
    RawClient client(server);
    client.send([&](remote::Message& message) {
      flatbuffers::FlatBufferBuilder& builder = message.builder();
      const auto barrier = wire::CreateBarrier(builder).Union();
      const auto list = builder.CreateVectorOfStructs(created);
      return wire::CreateSubmit(builder, 1, UINT64_MAX, 0, 0, wire::Operation::Barrier, barrier, list);
    });
    expect_refused(client, HALYARD_INVALID_ARGUMENT, "exists already, or is no number of an object");
  }
}

TEST(Attacks, SemaphoresOfASubmissionAreLimited) {
  ServerOptions options;
  options.limits.handles = 100;
  ServerOfTest server(options);
  RawClient client(server);
  client.send([&](remote::Message& message) {
    flatbuffers::FlatBufferBuilder& builder = message.builder();
    std::vector<wire::Point> created;
    for (uint64_t number = 1; number <= 101; ++number) created.emplace_back(number, 0);
    const auto barrier = wire::CreateBarrier(builder).Union();
    const auto list = builder.CreateVectorOfStructs(created);
    return wire::CreateSubmit(builder, 1, UINT64_MAX, 0, 0, wire::Operation::Barrier, barrier, list);
  });
  expect_refused(client, HALYARD_RESOURCE_EXHAUSTED, "--max_handles");
}

// ---- Offsets and lengths

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

// ---- Cycles

TEST(Attacks, WorkThatWaitsForItself) {
  ServerOfTest server;
  {
    RawClient client(server);
    for (const uint64_t id : {1, 2, 3}) client.create_semaphore(id);
    client.submit_barrier(10, {{1, 1}}, {{2, 1}});
    client.submit_barrier(11, {{2, 1}}, {{1, 1}});  // each waits for the other one
    client.submit_barrier(12, {{3, 5}}, {{3, 5}});  // and this one for itself
    // Other work goes on, and the circle can be broken.
    client.submit_barrier(13, {}, {{3, 1}});
    EXPECT_EQ(client.completion(13).code, HALYARD_OK);
    client.send(
        [](remote::Message& message) { return wire::CreateSemaphoreSignal(message.builder(), 1, 1); });
    EXPECT_EQ(client.completion(10).code, HALYARD_OK);
  }
  // The rest is dropped with its client.
  EXPECT_TRUE(server.becomes("connections", 0));
  EXPECT_TRUE(server.becomes("memory_bytes", 0));
}

// ---- Users of this machine

void append_frame(std::vector<uint8_t>& to, remote::Bytes message) {
  const uint32_t header[2] = {static_cast<uint32_t>(message.size()), 0};
  const auto* const bytes = reinterpret_cast<const uint8_t*>(header);
  to.insert(to.end(), bytes, bytes + sizeof header);
  to.insert(to.end(), message.begin(), message.end());
}

// What has come from a user who may not use the server is never handled.
TEST(Attacks, RefusedUsersRunNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr int kNobody = 65534;
  ServerOfTest server;
  {
    RawClient first(server);
  }  // now its threads run
  remote::Message hello, submit, ping;
  const auto name = hello.text("local-task");
  std::vector<uint8_t> frames;
  append_frame(frames, hello.to_server(wire::CreateHello(hello.builder(), remote::kOldestVersion,
                                                         remote::kNewestVersion, name)));
  const auto barrier = wire::CreateBarrier(submit.builder()).Union();
  append_frame(frames, submit.to_server(wire::CreateSubmit(submit.builder(), 9, UINT64_MAX, 0, 0,
                                                           wire::Operation::Barrier, barrier)));
  // More that is to be read before the end of the connection.
  const remote::Bytes more = ping.to_server(wire::CreatePing(ping.builder()));
  while (frames.size() < 60000) append_frame(frames, more);
  constexpr uint64_t kTries = 60;
  for (uint64_t i = 0; i < kTries; ++i) {
    int ends[2];
    // Of this thread alone. The system notes who makes the sockets.
    ASSERT_EQ(::syscall(SYS_setresuid, -1, kNobody, -1), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
    RawClient client{remote::Descriptor(ends[0])};
    ASSERT_TRUE(client.send_bytes(frames.data(), frames.size()));
    server->take(remote::Descriptor(ends[1]), nullptr);
    expect_refused(client, HALYARD_PERMISSION_DENIED, "--allow_user");
    EXPECT_FALSE(client.receive());
  }
  EXPECT_TRUE(server.becomes("connections_refused_total", kTries));
  EXPECT_TRUE(server.becomes("connections", 0));
  EXPECT_EQ(server.metric("submissions_total"), 0u);
}

// ---- Unbounded allocation

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

// What is not charged stays small: the client names things many times, or with much text. Each of these
// tests makes 800 MB of it. A sanitizer keeps 256 MB that were freed.
constexpr uint64_t kLittle = 450 << 20;

void await_barrier(RawClient& client, uint64_t id) {
  client.submit_barrier(id, {}, {});
  EXPECT_EQ(client.completion(id).code, HALYARD_OK);
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

TEST(Attacks, HandlesAreLimited) {
  ServerOptions options;
  options.limits.handles = 100;
  ServerOfTest server(options);
  RawClient client(server);
  for (uint64_t id = 1; id <= 101; ++id) client.create_semaphore(id);
  expect_refused(client, HALYARD_RESOURCE_EXHAUSTED, "--max_handles");
}

TEST(Attacks, SubmissionsInFlightAreLimited) {
  ServerOptions options;
  options.limits.handles = 100;
  ServerOfTest server(options);
  {
    RawClient client(server);
    client.create_semaphore(1);
    for (uint64_t id = 1; id <= 101; ++id) client.submit_barrier(id, {{1, 1}}, {});
    expect_refused(client, HALYARD_RESOURCE_EXHAUSTED, "--max_handles");
  }
  EXPECT_TRUE(server.becomes("memory_bytes", 0));
}

TEST(Attacks, ConnectionsAreLimited) {
  ServerOptions options;
  options.limits.connections_of_client = 2;
  ServerOfTest server(options);
  RawClient first(server), second(server), third(server, nullptr);
  third.send([](remote::Message& message) { return wire::CreateHello(message.builder(), 1, 1); });
  expect_refused(third, HALYARD_RESOURCE_EXHAUSTED, "--max_client_connections");
}

TEST(Attacks, BlobsThatDoNotFit) {
  ServerOfTest server;
  RawClient client(server);
  const remote::Sha256 digest = {1, 2, 3};
  const wire::Digest name = remote::to_wire(digest);
  const uint8_t bytes[8] = {};
  for (const uint64_t size : {kHuge, UINT64_MAX, uint64_t{1} << 40}) {
    client.send(
        [&](remote::Message& message) { return wire::CreateBlobWrite(message.builder(), &name, size, 0); },
        bytes);
    client.send([&](remote::Message& message) {
      const auto request = wire::CreateRequest(message.builder(), 0x30, 0xC03, UINT64_MAX, size);
      return wire::CreateMemoryImport(message.builder(), 5, 1, request, &name);
    });
    const wire::ToClient* const answer = client.receive();
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->body_as_Need());  // it was not kept
  }
}

TEST(Attacks, BlobsWithAWrongDigest) {
  ServerOfTest server;
  RawClient client(server);
  const uint8_t bytes[8] = {1, 2, 3};
  const wire::Digest name = remote::to_wire(remote::Sha256{9});
  client.send([&](remote::Message& message) { return wire::CreateBlobWrite(message.builder(), &name, 8, 0); },
              bytes);
  expect_refused(client, HALYARD_DATA_LOSS, "SHA-256");
}

TEST(Attacks, PiecesOfBlobsOutOfOrder) {
  ServerOfTest server;
  for (const uint64_t offset : {uint64_t{8}, UINT64_MAX - 3}) {
    RawClient client(server);
    const uint8_t bytes[8] = {};
    const wire::Digest name = remote::to_wire(remote::Sha256{9});
    client.send(
        [&](remote::Message& message) { return wire::CreateBlobWrite(message.builder(), &name, 16, 0); },
        remote::Bytes(bytes, 4));
    client.send(
        [&](remote::Message& message) { return wire::CreateBlobWrite(message.builder(), &name, 16, offset); },
        bytes);
    expect_refused(client, HALYARD_INVALID_ARGUMENT, "expected the bytes of a blob");
  }
}

TEST(Attacks, PiecesOfBlobsWithOtherSizes) {
  ServerOfTest server;
  RawClient client(server);
  const uint8_t bytes[8] = {};
  const wire::Digest name = remote::to_wire(remote::Sha256{9});
  for (const uint64_t size : {16, 12})
    client.send(
        [&](remote::Message& message) {
          return wire::CreateBlobWrite(message.builder(), &name, size, size == 16 ? 0 : 4);
        },
        remote::Bytes(bytes, 4));
  expect_refused(client, HALYARD_INVALID_ARGUMENT, "a blob of 16 bytes, found those of one of 12");
}

// A client asks for all bytes at once, again and again, and receives none: what waits for it is bounded.
TEST(Attacks, ReadsThatNobodyReceives) {
  ServerOptions options;
  options.limits.unsent = 32 << 20;
  options.limits.silence = std::chrono::seconds(8);  // of the other client as well
  ServerOfTest server(options);
  RawClient client(server);
  constexpr uint64_t kSize = 200 << 20;
  client.create_memory(1, kSize);
  const uint64_t before = resident_bytes();
  for (uint64_t request = 1; request <= 20; ++request)
    client.send([&](remote::Message& message) {
      return wire::CreateMemoryRead(message.builder(), request, 1, 0, kSize, UINT64_MAX, request % 2 == 0);
    });
  RawClient other(server);
  other.create_memory(1, 64);
  other.read(1, 1, 0, 64);
  EXPECT_TRUE(other.receive());
  const auto begin = std::chrono::steady_clock::now();
  uint64_t most = 0;
  while (server.metric("connections") > 1 &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(120)) {
    most = std::max(most, resident_bytes());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LT(most, before + kSize + (100u << 20));  // the memory itself, and what is under way
}

TEST(Attacks, PingsWithoutReceiving) {
  ServerOptions options;
  options.limits.unsent = 1 << 20;
  ServerOfTest server(options);
  RawClient client(server);
  remote::Message ping;
  const remote::Bytes bytes = ping.to_server(wire::CreatePing(ping.builder()));
  bool goes_on = true;
  for (int i = 0; i < 200000 && goes_on; ++i) goes_on = client.send_frame(bytes);
  EXPECT_FALSE(goes_on);
  EXPECT_TRUE(server.becomes("connections", 0));
}

// Messages that wait behind one that is not handled count as memory of the client.
TEST(Attacks, MessagesThatWaitAreCharged) {
  ServerOptions options;
  options.limits.memory = 4 << 20;
  ServerOfTest server(options);
  RawClient client(server);
  const timeval patience = {6, 0};  // longer than a busy server takes to receive what it can
  ::setsockopt(client.socket(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  // Answers that wait: bytes of the memory itself, which are not charged once more.
  client.create_memory(1, 1 << 20);
  for (uint64_t request = 1; request <= 20; ++request)
    client.send([&](remote::Message& message) {
      return wire::CreateMemoryRead(message.builder(), request, 1, 0, 1 << 20, UINT64_MAX);
    });
  // The first of these takes a thread of the pool, and the next one waits there for the client to receive.
  const std::vector<uint8_t> bytes(1 << 20);
  // Unless that thread is done before the next one comes, so there are several.
  client.create_memory(2, 100000);
  for (uint64_t request = 30; request < 150; request += 2) {
    client.send([&](remote::Message& message) {
      return wire::CreateGrade(message.builder(), request, message.text("vmvx-bytecode-fb"));
    });
    client.read(request + 1, 2, 0, 100000);
  }
  for (int i = 0; i < 40; ++i)
    if (!client.send(
            [](remote::Message& message) { return wire::CreateStageWrite(message.builder(), 9, 1 << 20, 0); },
            bytes))
      break;
  for (int i = 0; i < 12000 && server.metric("memory_bytes") <= 3u << 20; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GT(server.metric("memory_bytes"), 3u << 20);
  EXPECT_LE(server.metric("memory_bytes"), options.limits.memory);
  EXPECT_LT(server.metric("received_bytes_total"), 6u << 20);
  // Another client has its own.
  RawClient other(server, "local-sync");
  other.send([](remote::Message& message) { return wire::CreatePing(message.builder(), 5); });
  EXPECT_TRUE(other.receive());
}

// So do answers that wait for a client that does not receive.
TEST(Attacks, AnswersThatWaitAreCharged) {
  ServerOptions options;
  options.limits.memory = 4 << 20;
  ServerOfTest server(options);
  RawClient client(server);
  client.create_memory(1, 200000);
  for (uint64_t request = 1; request <= 200; ++request)
    if (!client.send([&](remote::Message& message) {
          return wire::CreateMemoryRead(message.builder(), request, 1, 0, 200000, UINT64_MAX);
        }))
      break;
  EXPECT_TRUE(server.becomes("connections", 0));
  EXPECT_LT(server.metric("sent_bytes_total"), 6u << 20);
  EXPECT_TRUE(server.becomes("memory_bytes", 0));
}

// ---- Contents of watched memory

void submit_fill(RawClient& client, uint64_t id, uint64_t memory, uint64_t size, uint8_t value,
                 std::vector<wire::Point> signals = {}) {
  client.send([&](remote::Message& message) {
    flatbuffers::FlatBufferBuilder& builder = message.builder();
    const wire::Range target(memory, 0, 0, 0, size);
    const auto signalled = builder.CreateVectorOfStructs(signals);
    const auto fill = wire::CreateFill(builder, &target, value, 1).Union();
    return wire::CreateSubmit(builder, id, UINT64_MAX, 0, signalled, wire::Operation::Fill, fill);
  });
}

void watch(RawClient& client, uint64_t memory) {
  client.send(
      [&](remote::Message& message) { return wire::CreateMemoryWatch(message.builder(), memory, true); });
}

// A client that does not receive contents for a while still has its other work done, and so have others.
TEST(Attacks, ContentsThatNobodyReceives) {
  ServerOfTest server;
  RawClient client(server);
  constexpr uint64_t kSize = 64 << 20;
  client.create_memory(1, kSize);
  client.create_memory(2, 64);
  watch(client, 1);
  await_barrier(client, 4);  // what follows is handled on the thread that receives
  submit_fill(client, 5, 1, kSize, 7);
  for (int i = 0; i < 12000 && server.metric("sent_bytes_total") < 8u << 20; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (uint64_t id = 10; id < 20; ++id)
    client.submit_copy(id, wire::Range(1, 0, 0, kSize, 8), wire::Range(2, 0, 0, 0, 8));  // fails at once
  client.send([](remote::Message& message) { return wire::CreatePing(message.builder(), 5); });
  EXPECT_EQ(client.completion(5).code, HALYARD_OK);
  EXPECT_EQ(client.completion(19).code, HALYARD_OUT_OF_RANGE);
}

// What is known of work includes what the work has read.
TEST(Attacks, ContentsComeBeforeWhatDependsOnThem) {
  ServerOfTest server;
  RawClient client(server);
  constexpr uint64_t kSize = 1 << 20;
  client.create_memory(1, kSize);
  client.create_semaphore(2);
  watch(client, 1);
  std::vector<uint8_t> contents(kSize);
  for (uint64_t i = 1; i <= 50; ++i) {
    const auto value = static_cast<uint8_t>(i);
    submit_fill(client, 1000 + i, 1, kSize, value, {{2, i}});
    client.submit_barrier(2000 + i, {{2, i}}, {});
    for (bool is_over = false; !is_over;) {
      const wire::ToClient* const message = client.receive();
      ASSERT_TRUE(message);
      if (const wire::Contents* const part = message->body_as_Contents())
        std::ranges::copy(client.data(), contents.begin() + static_cast<ptrdiff_t>(part->offset()));
      if (const wire::Completed* const completed = message->body_as_Completed())
        is_over = completed->submission() == 2000 + i;
      if (const wire::Completions* const several = message->body_as_Completions())
        is_over = std::ranges::find(*several->submissions(), 2000 + i) != several->submissions()->end();
    }
    ASSERT_EQ(std::ranges::count(contents, value), static_cast<ptrdiff_t>(kSize)) << i;
  }
}

// All bytes at once are more than may wait for a client.
TEST(Attacks, ReadsOfLargeContents) {
  ServerOptions options;
  options.limits.unsent = 16 << 20;
  ServerOfTest server(options);
  RawClient client(server);
  constexpr uint64_t kSize = 64 << 20;
  client.create_memory(1, kSize);
  // The first one may be handled by another thread than the later ones.
  for (uint64_t turn = 1; turn <= 5; ++turn) {
    await_barrier(client, turn);
    client.send([](remote::Message& message) {
      return wire::CreateMemoryRead(message.builder(), 9, 1, 0, kSize, 0, true);
    });
    uint64_t received = 0;
    for (bool is_done = false; !is_done;) {
      const wire::ToClient* const message = client.receive();
      ASSERT_TRUE(message);
      const wire::Refused* const refused = message->body_as_Refused();
      ASSERT_FALSE(refused) << remote::failure_of(refused->status()).message;
      is_done = message->body_as_Done() != nullptr;
      received += client.data().size();
    }
    EXPECT_EQ(received, kSize);
  }
}

// ---- What others have left

TEST(Attacks, NewMemoryShowsNothingOfOtherClients) {
  ServerOfTest server;
  for (const uint64_t owner : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
    const std::vector<uint8_t> secret(70000, 0x5E);
    {
      RawClient first(server);
      first.create_memory(1, secret.size(), 0, owner);
      first.send([](remote::Message& message) { return wire::CreateMemoryWrite(message.builder(), 1, 0); },
                 secret);
      first.read(1, 1, 0, 8);
      ASSERT_TRUE(first.receive());
      EXPECT_EQ(first.data(), std::vector<uint8_t>(8, 0x5E));
    }
    ASSERT_TRUE(server.becomes("memory_bytes", 0));
    RawClient second(server);
    second.create_memory(1, secret.size(), 0, owner);
    second.read(1, 1, 0, secret.size());
    ASSERT_TRUE(second.receive());
    EXPECT_EQ(second.data(), std::vector<uint8_t>(secret.size(), 0)) << owner;
  }
}

// The connections of a client share a device; a device without users is closed or kept for its client.
TEST(Attacks, DevicesOfClientsAreTheirOwn) {
  if (std::getenv("HALYARD_TEST_ISOLATES")) GTEST_SKIP() << "each connection has a process of its own";
  ServerOfTest server;
  {
    RawClient first(server), second(server), third(server, "null");
    EXPECT_EQ(server.metric("open_devices"), 2u);
  }
  ASSERT_TRUE(server.becomes("connections", 0));
  for (const char* const device : {"local-task", "local-sync", "null"}) RawClient again(server, device);
  ASSERT_TRUE(server.becomes("connections", 0));
  EXPECT_LE(server.metric("open_devices"), 4u);
}

// ---- Code

TEST(Attacks, MachineCodeIsRefused) {
  ServerOfTest server;
  RawClient client(server);
  for (const char* const format : {"embedded-elf-x86_64", "system-elf-x86_64"}) {
    client.send([&](remote::Message& message) {
      const auto text = message.text(format);
      const wire::Digest name = remote::to_wire(remote::Sha256{1});
      return wire::CreateExecutableCreate(message.builder(), 3, format[0], text, &name, 100, UINT64_MAX);
    });
    const wire::ToClient* const answer = client.receive();
    ASSERT_TRUE(answer && answer->body_as_Done());
    const remote::Failure failure = remote::failure_of(answer->body_as_Done()->status());
    EXPECT_EQ(failure.code, HALYARD_PERMISSION_DENIED);
    EXPECT_NE(failure.message.find("--allow_native"), std::string::npos);
  }
}

// ---- The protocol

TEST(Attacks, MessagesBeforeTheGreeting) {
  ServerOfTest server;
  {
    RawClient client(server, nullptr);
    client.create_memory(1, 64);
    expect_refused(client, HALYARD_UNAUTHENTICATED, "greeting");
  }
  {
    RawClient client(server, nullptr);
    client.send([](remote::Message& message) { return wire::CreatePing(message.builder(), 1); });
    const wire::ToClient* const answer = client.receive();
    ASSERT_TRUE(answer && answer->body_as_Refused());
  }
  RawClient client(server);
  client.send([](remote::Message& message) { return wire::CreateHello(message.builder(), 1, 1); });
  expect_refused(client, HALYARD_INVALID_ARGUMENT, "one greeting");
}

TEST(Attacks, MemoryThatTheClientPromisesToFillShowsNothing) {
  ServerOfTest server;
  constexpr size_t kSize = 300000;
  const std::vector<uint8_t> secret(kSize, 0x5A);
  const auto fill = [&](RawClient& client, uint64_t id, uint64_t offset, size_t size) {
    client.send(
        [&](remote::Message& message) { return wire::CreateMemoryWrite(message.builder(), id, offset); },
        remote::Bytes(secret).first(size));
  };
  constexpr uint64_t kWritesAll = UINT64_MAX;  // HALYARD_OWNER_WRITES_ALL
  const auto create = [&](RawClient& client, uint64_t id) { client.create_memory(id, kSize, 0, kWritesAll); };
  // What `client` reads of a memory in which it has written [begin, end).
  const auto expect_zeros = [&](RawClient& client, uint64_t id, size_t begin, size_t end) {
    client.read(id, id, 0, kSize);
    std::vector<uint8_t> found;
    while (found.size() < kSize) {
      ASSERT_TRUE(client.receive());
      ASSERT_FALSE(client.data().empty());
      found.insert(found.end(), client.data().begin(), client.data().end());
    }
    for (size_t i = 0; i < kSize; ++i)
      ASSERT_EQ(found[i], i >= begin && i < end ? 0x5A : 0) << id << " " << i;
  };
  for (int round = 0; round < 3; ++round) {
    RawClient first(server);
    create(first, 1);
    fill(first, 1, 0, kSize);
    expect_zeros(first, 1, 0, kSize);
    first.send([](remote::Message& message) { return wire::CreateMemoryDestroy(message.builder(), 1); });
    RawClient second(server);
    for (uint64_t id = 1; id < 6; ++id) create(second, id);
    expect_zeros(second, 1, 0, 0);
    fill(second, 2, 0, 100000);
    expect_zeros(second, 2, 0, 100000);
    fill(second, 3, 100000, 70000);  // behind bytes that were not written
    expect_zeros(second, 3, 100000, 170000);
    fill(second, 4, 0, 65536);  // in two steps
    fill(second, 4, 65536, 50000);
    expect_zeros(second, 4, 0, 115536);
  }
}

TEST(Attacks, ImportsOfBlobsThatWereNotWanted) {
  ServerOfTest server;
  RawClient client(server);
  client.send([](remote::Message& message) {
    const auto request = wire::CreateRequest(message.builder(), 0, 0, UINT64_MAX, 64, 0);
    const wire::Digest digest = remote::to_wire(remote::sha256({}));
    return wire::CreateMemoryImport(message.builder(), 0, 1, request, &digest);
  });
  expect_refused(client, HALYARD_INVALID_ARGUMENT, "was not wanted");
  RawClient greedy(server);
  greedy.send([](remote::Message& message) {
    const std::vector<wire::Digest> many((1 << 16) + 1, remote::to_wire(remote::sha256({})));
    return wire::CreateBlobsWanted(message.builder(), 1, message.builder().CreateVectorOfStructs(many));
  });
  expect_refused(greedy, HALYARD_RESOURCE_EXHAUSTED, "at most");
}

TEST(Attacks, VersionsThatTheServerDoesNotSpeak) {
  ServerOfTest server;
  for (const auto& range : {std::pair{remote::kNewestVersion + 1, 9u}, {0u, 0u}, {5u, 1u}}) {
    RawClient client(server, nullptr);
    client.send([&](remote::Message& message) {
      return wire::CreateHello(message.builder(), range.first, range.second);
    });
    expect_refused(client, HALYARD_UNIMPLEMENTED, "versions");
  }
  // A client that also speaks later ones is served.
  RawClient client(server, nullptr);
  client.send([](remote::Message& message) { return wire::CreateHello(message.builder(), 1, 1000); });
  const wire::ToClient* const answer = client.receive();
  ASSERT_TRUE(answer && answer->body_as_Welcome());
  EXPECT_EQ(answer->body_as_Welcome()->version(), remote::kNewestVersion);
}

TEST(Attacks, SilentClientsAreEnded) {
  ServerOptions options;
  options.limits.greeting = std::chrono::milliseconds(100);
  ServerOfTest server(options);
  RawClient client(server, nullptr);
  expect_refused(client, HALYARD_DEADLINE_EXCEEDED, "no greeting");
}

TEST(Attacks, OtherBytesThanMessages) {
  ServerOfTest server;
  uint32_t seed = 1;
  for (int i = 0; i < 200; ++i) {
    RawClient client(server, nullptr);
    std::vector<uint8_t> bytes(1 + i % 200);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
    client.send_frame(bytes);
    const remote::Failure refusal = client.refusal();
    EXPECT_TRUE(refusal.code == HALYARD_INVALID_ARGUMENT || refusal.code == HALYARD_UNAUTHENTICATED ||
                refusal.code == HALYARD_UNIMPLEMENTED)
        << refusal.message;
  }
}

// Whatever a client does, others go on.
TEST(Attacks, ConnectionsThatEndInTheMiddle) {
  ServerOfTest server;
  RawClient other(server);
  other.create_memory(1, 64);
  remote::Message message;
  const auto name = message.text("local-task");
  const remote::Bytes hello = message.to_server(wire::CreateHello(message.builder(), 1, 1, name));
  std::vector<uint8_t> frame(8 + hello.size());
  const uint32_t header[2] = {static_cast<uint32_t>(hello.size()), 0};
  std::memcpy(frame.data(), header, 8);
  std::memcpy(frame.data() + 8, hello.data(), hello.size());
  for (size_t size = 0; size < frame.size(); ++size) {
    RawClient client(server, nullptr);
    client.send_bytes(frame.data(), size);
  }
  EXPECT_TRUE(server.becomes("connections", 1));
  other.read(1, 1, 0, 64);
  EXPECT_TRUE(other.receive());
}

}  // namespace
}  // namespace halyard::device_server
