// The beginning of a connection, and connections of something else than clients.
#include "attacks.h"
#include "halyard/driver.h"

namespace halyard::device_server {
namespace {

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

TEST(Attacks, LargeMessagesBeforeTheGreeting) {
  ServerOfTest server;
  for (const auto& header : {std::pair{uint32_t{1} << 20, 0u}, {16u, uint32_t{1} << 20}}) {
    RawClient client(server, nullptr);
    client.send_bytes(&header, sizeof header);
    EXPECT_EQ(client.receive(), nullptr);  // without any answer, before the bytes have come
    RawClient known(server);
    known.send_bytes(&header, sizeof header);
    known.send_bytes(std::vector<uint8_t>(header.first + header.second).data(), header.first + header.second);
    expect_refused(known, HALYARD_INVALID_ARGUMENT, "other bytes");
  }
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

TEST(Attacks, ConnectionsAreLimited) {
  ServerOptions options;
  options.limits.connections_of_client = 2;
  ServerOfTest server(options);
  RawClient first(server), second(server), third(server, nullptr);
  third.send([](remote::Message& message) { return wire::CreateHello(message.builder(), 1, 1); });
  expect_refused(third, HALYARD_RESOURCE_EXHAUSTED, "--max_client_connections");
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
