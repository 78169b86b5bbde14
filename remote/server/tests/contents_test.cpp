// Contents of watched memory: their order, and clients that do not receive them.
#include <sys/time.h>

#include <algorithm>

#include "attacks.h"
#include "halyard/driver.h"

namespace halyard::device_server {
namespace {

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

// Nor is it held up by those that it has asked for: it may have to send before it receives.
TEST(Attacks, AnswersWithContentsThatNobodyReceives) {
  ServerOptions options;
  options.limits.backlog = 1 << 20;
  ServerOfTest server(options);
  RawClient client(server);
  const timeval patience = {10, 0};
  ::setsockopt(client.socket(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  constexpr uint64_t kSize = 64 << 20;
  client.create_memory(1, kSize);
  client.create_memory(2, 1 << 20);
  client.send([](remote::Message& message) {
    return wire::CreateMemoryRead(message.builder(), 5, 1, 0, kSize, 0, true);
  });
  const std::vector<uint8_t> bytes(1 << 20, 7);
  for (int i = 0; i < 16; ++i)
    ASSERT_TRUE(client.send(
        [](remote::Message& message) { return wire::CreateMemoryWrite(message.builder(), 2, 0); }, bytes));
  uint64_t received = 0;
  for (;;) {
    const wire::ToClient* const message = client.receive();
    ASSERT_TRUE(message);
    if (message->body_as_Contents()) received += client.data().size();
    if (message->body_as_Done()) break;
  }
  EXPECT_EQ(received, kSize);
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

}  // namespace
}  // namespace halyard::device_server
