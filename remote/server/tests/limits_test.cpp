// What ends work and gives memory back: stops, the last release, the end of a client; limits over several
// connections of one client.
#include <boost/asio/post.hpp>
#include <deque>
#include <new>

#include "raw_client.h"
#include "server/shared.h"

namespace halyard::device_server {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

class Limits : public testing::Test {
 protected:
  void stop(RawClient& client, uint64_t submission, int32_t code) {
    client.send(
        [&](remote::Message& message) { return wire::CreateStop(message.builder(), submission, code); });
  }
  void signal(RawClient& client, uint64_t semaphore, uint64_t value) {
    client.send([&](remote::Message& message) {
      return wire::CreateSemaphoreSignal(message.builder(), semaphore, value);
    });
  }
  // Fills memory 1 when semaphore 1 has the value 1.
  void submit_fill(RawClient& client, uint64_t id, uint64_t size) {
    client.send([&](remote::Message& message) {
      flatbuffers::FlatBufferBuilder& builder = message.builder();
      const wire::Point wait(1, 1);
      const wire::Range target(1, 0, 0, 0, size);
      const auto waits = builder.CreateVectorOfStructs(&wait, 1);
      const auto fill = wire::CreateFill(builder, &target, 7, 1).Union();
      return wire::CreateSubmit(builder, id, UINT64_MAX, waits, 0, wire::Operation::Fill, fill);
    });
  }
  // Work that keeps the thread busy that handles the client's messages, until its time is over. The device is
  // local-sync.
  void submit_long_work(RawClient& client, uint64_t id) {
    constexpr uint64_t kSize = 16 << 20;
    client.create_memory(1, kSize);
    client.send([&](remote::Message& message) {
      flatbuffers::FlatBufferBuilder& builder = message.builder();
      const wire::Range target(1, 0, 0, 0, kSize);
      const auto fill = wire::CreateFill(builder, &target, 7, 1).Union();
      const auto command = wire::CreateRecordedCommand(builder, wire::Command::Fill, fill);
      const auto commands = builder.CreateVector(std::vector(100000, command));
      return wire::CreateListCreate(builder, 2, false, UINT64_MAX, 0, commands);
    });
    client.send([&](remote::Message& message) {
      return wire::CreateSubmit(message.builder(), id, UINT64_MAX, 0, 0, wire::Operation::Execute,
                                wire::CreateExecute(message.builder(), 2).Union());
    });
  }
  // Whether the server could allocate.
  bool allocate(RawClient& client, uint64_t id, uint64_t size) {
    client.create_memory(id, size, 1000 + id);
    const wire::ToClient* const answer = client.receive();
    if (!answer || !answer->body_as_Done()) return false;
    const remote::Failure failure = remote::failure_of(answer->body_as_Done()->status());
    EXPECT_TRUE(failure.code == HALYARD_OK || failure.code == HALYARD_RESOURCE_EXHAUSTED) << failure.message;
    return failure.code == HALYARD_OK;
  }
};

// Of work that waits, that has ended, that does not exist, and with a code that is none.
TEST_F(Limits, StopsOfOtherWork) {
  ServerOfTest server;
  RawClient client(server);
  client.create_semaphore(1);
  client.submit_barrier(12, {}, {});
  EXPECT_EQ(client.completion(12).code, HALYARD_OK);
  client.submit_barrier(13, {{1, 1}}, {});
  for (const uint64_t id : {uint64_t{12}, uint64_t{13}, uint64_t{99}, UINT64_MAX}) stop(client, id, 12345);
  client.submit_barrier(14, {}, {});
  EXPECT_EQ(client.completion(14).code, HALYARD_OK);
  signal(client, 1, 1);
  const remote::Failure ended = client.completion(13);
  EXPECT_TRUE(ended.code == HALYARD_OK || ended.code == HALYARD_CANCELLED) << ended.message;
}

// Work that waits longer than it may is no reason to end its connection.
TEST_F(Limits, TheTimeOfWorkThatWaits) {
  ServerOptions options;
  options.limits.work_time = std::chrono::milliseconds(10);
  ServerOfTest server(options);
  RawClient client(server);
  client.create_semaphore(1);
  client.submit_barrier(13, {{1, 1}}, {});
  std::this_thread::sleep_for(std::chrono::milliseconds(5500));
  // On a busy machine, others may take longer than they may as well.
  remote::Failure ended = {HALYARD_UNKNOWN, ""};
  for (uint64_t id = 14; id < 200 && ended.code != HALYARD_OK; ++id) {
    client.submit_barrier(id, {}, {});
    ended = client.completion(id);
  }
  EXPECT_EQ(ended.code, HALYARD_OK) << ended.message;
}

// While the server has no room for more messages it does not read, which is not the client's silence, and it
// says that it lives.
TEST_F(Limits, SilenceWhileTheServerDoesNotRead) {
  ServerOptions options;
  options.limits.work_time = std::chrono::seconds(4);
  options.limits.silence = std::chrono::seconds(1);
  options.limits.backlog = 64 << 10;
  ServerOfTest server(options);
  remote::Failure last = {HALYARD_UNKNOWN, ""};
  for (int i = 0; i < 5 && last.code != HALYARD_OK; ++i) {  // a client that is paused is silent
    RawClient client(server, "local-sync");
    submit_long_work(client, 9);
    std::thread sender([&] {
      const std::vector<uint8_t> bytes(64 << 10);
      for (int message = 0; message < 40; ++message)
        client.send([](remote::Message& it) { return wire::CreateMemoryWrite(it.builder(), 1, 0); }, bytes);
      client.submit_barrier(10, {}, {});
    });
    size_t pongs = 0;
    last = client.completion(10, &pongs);
    sender.join();
    if (last.code == HALYARD_OK) {
      EXPECT_GT(pongs, 0u);
    }
  }
  EXPECT_EQ(last.code, HALYARD_OK) << last.message;
}

// As one that finds no memory.
TEST_F(Limits, HandlersThatThrowEndNoOtherOne) {
  ReceivingThread thread(std::chrono::microseconds(0));
  std::vector<std::string> lines;
  bool has_run = false;
  boost::asio::post(thread.io, [] { throw std::bad_alloc(); });
  boost::asio::post(thread.io, [&] {
    has_run = true;
    thread.io.stop();
  });
  thread.run([&](std::string_view line) { lines.emplace_back(line); });
  EXPECT_TRUE(has_run);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("bad_alloc"), std::string::npos) << lines[0];
}

// More connections of clients that do not say who they are than there may be: the oldest one ends.
TEST_F(Limits, Strangers) {
  ServerOptions options;
  options.limits.strangers = 4;
  options.limits.greeting = std::chrono::minutes(10);
  ServerOfTest server(options);
  RawClient known(server);
  std::deque<RawClient> strangers;
  for (int i = 0; i < 12; ++i) strangers.emplace_back(server, nullptr);
  int refused = 0;
  for (RawClient& stranger : strangers) {
    if (refused == 8) {
      stranger.greet("local-task");
      continue;
    }
    const remote::Failure refusal = stranger.refusal();
    EXPECT_EQ(refusal.code, HALYARD_UNAVAILABLE) << refused;
    EXPECT_NE(refusal.message.find("did not say who it is"), std::string::npos) << refusal.message;
    ++refused;
  }
  known.create_memory(1, 64);
  known.read(1, 1, 0, 64);
  EXPECT_TRUE(known.receive());
}

// What waits to and from such a client is little.
TEST_F(Limits, BytesOfStrangers) {
  if (std::getenv("HALYARD_TEST_ISOLATES")) GTEST_SKIP() << "no other client keeps its process busy";
  remote::Message hello, ping;
  const remote::Bytes greeting = hello.to_server(wire::CreateHello(hello.builder(), 1, 1));
  const remote::Bytes pinged = ping.to_server(wire::CreatePing(ping.builder()));
  bool has_ended = false;
  for (int i = 0; i < 10 && !has_ended; ++i) {  // others are busy for a short time alone
    ServerOptions options;
    options.limits.work_time = std::chrono::seconds(1);
    ServerOfTest server(options);
    std::deque<RawClient> others;  // for each thread that greets
    for (int other = 0; other < 3; ++other) others.emplace_back(server, "local-sync");
    for (RawClient& other : others) submit_long_work(other, 9);
    while (server.metric("submissions_total") < others.size()) std::this_thread::yield();
    RawClient client(server, nullptr);
    client.send_frame(greeting);
    for (int message = 0; message < 100000 && !has_ended; ++message) has_ended = !client.send_frame(pinged);
  }
  EXPECT_TRUE(has_ended);
}

TEST_F(Limits, MemoryThatWorkUsesLivesUntilItHasEnded) {
  ServerOfTest server;
  RawClient client(server);
  client.create_semaphore(1);
  ASSERT_TRUE(allocate(client, 1, kMebibyte));
  submit_fill(client, 20, kMebibyte);
  client.send([](remote::Message& message) { return wire::CreateMemoryDestroy(message.builder(), 1); });
  client.submit_barrier(21, {}, {});
  EXPECT_EQ(client.completion(21).code, HALYARD_OK);
  EXPECT_GE(server.metric("memory_bytes"), kMebibyte);
  signal(client, 1, 1);
  EXPECT_EQ(client.completion(20).code, HALYARD_OK);
  client.send([](remote::Message& message) { return wire::CreateSemaphoreDestroy(message.builder(), 1); });
  // A device may keep memory that was released for its next user; nothing is charged for it.
  for (int i = 0; i < 12000 && server.metric("memory_bytes") >= kMebibyte; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LT(server.metric("memory_bytes"), kMebibyte);
}

TEST_F(Limits, TheEndOfAClientGivesEverythingBack) {
  ServerOfTest server;
  {
    RawClient client(server);
    client.create_semaphore(1);
    for (uint64_t id = 1; id < 5; ++id) ASSERT_TRUE(allocate(client, id, kMebibyte));
    submit_fill(client, 20, kMebibyte);
    EXPECT_GE(server.metric("memory_bytes"), 4 * kMebibyte);
  }
  EXPECT_TRUE(server.becomes("connections", 0));
  EXPECT_TRUE(server.becomes("memory_bytes", 0));
}

TEST_F(Limits, TheMemoryOfAClientIsThatOfAllItsConnections) {
  ServerOptions options;
  options.limits.memory = 4 * kMebibyte;
  ServerOfTest server(options);
  RawClient second(server);
  {
    RawClient first(server);
    EXPECT_TRUE(allocate(first, 1, 3 * kMebibyte));
    EXPECT_FALSE(allocate(second, 1, 2 * kMebibyte));
    EXPECT_TRUE(allocate(second, 2, kMebibyte / 2));
    EXPECT_FALSE(allocate(first, 2, kMebibyte));
  }
  EXPECT_TRUE(server.becomes("connections", 1));
  bool is_free = false;
  for (uint64_t id = 10; id < 12000 && !is_free; ++id) {
    is_free = allocate(second, id, 3 * kMebibyte);
    if (!is_free) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(is_free);
}

// What one connection has sent, another one of the same client finds; what is in use by one is not dropped.
TEST_F(Limits, BlobsOfAClientAreThoseOfAllItsConnections) {
  ServerOptions options;
  options.limits.cache = 3 * kMebibyte;
  ServerOfTest server(options);
  const auto content = [](uint8_t number) { return std::vector<uint8_t>(kMebibyte, number); };
  const auto send_blob = [&](RawClient& client, uint8_t number) {
    const std::vector<uint8_t> bytes = content(number);
    const wire::Digest digest = remote::to_wire(remote::sha256(bytes));
    client.send(
        [&](remote::Message& message) {
          return wire::CreateBlobWrite(message.builder(), &digest, bytes.size(), 0);
        },
        bytes);
  };
  // Done: the memory has the bytes. Need: the server does not have them.
  const auto import = [&](RawClient& client, uint64_t id, uint8_t number) {
    const wire::Digest digest = remote::to_wire(remote::sha256(content(number)));
    client.send([&](remote::Message& message) {
      const auto request = wire::CreateRequest(message.builder(), 0x30, 0xC03, UINT64_MAX, kMebibyte);
      return wire::CreateMemoryImport(message.builder(), 500 + id, id, request, &digest);
    });
    const wire::ToClient* const answer = client.receive();
    return answer && answer->body_as_Done() && remote::failure_of(answer->body_as_Done()->status()).code == 0;
  };
  RawClient second(server);
  {
    RawClient first(server);
    send_blob(first, 1);
    EXPECT_TRUE(import(first, 1, 1));
    EXPECT_TRUE(import(second, 1, 1));
  }
  EXPECT_TRUE(server.becomes("connections", 1));
  // Others take its place, but its bytes stay where they are.
  for (uint8_t number = 2; number < 12; ++number) {
    send_blob(second, number);
    EXPECT_TRUE(import(second, 20 + number, number));
    second.send([&](remote::Message& message) {
      return wire::CreateMemoryDestroy(message.builder(), uint64_t{20} + number);
    });
  }
  second.read(7, 1, kMebibyte - 8, 8);
  ASSERT_TRUE(second.receive());
  EXPECT_EQ(second.data(), std::vector<uint8_t>(8, 1));
  EXPECT_LE(server.metric("cached_bytes"), 4 * kMebibyte);
  EXPECT_FALSE(import(second, 90, 2));
}

}  // namespace
}  // namespace halyard::device_server
