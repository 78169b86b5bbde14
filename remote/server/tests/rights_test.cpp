// Who may do what: users, machine code, and what other clients have left in memory.
#include <sys/syscall.h>

#include "attacks.h"
#include "halyard/driver.h"

namespace halyard::device_server {
namespace {

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

}  // namespace
}  // namespace halyard::device_server
