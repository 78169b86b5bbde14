// A client that sends and does not receive: what waits on both ways is bounded and charged.
#include <sys/time.h>

#include <algorithm>
#include <chrono>

#include "attacks.h"

namespace halyard::device_server {
namespace {

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

}  // namespace
}  // namespace halyard::device_server
