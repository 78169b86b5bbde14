// Messages with constants and code: sizes, order, digests.
#include "attacks.h"
#include "halyard/driver.h"

namespace halyard::device_server {
namespace {

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

}  // namespace
}  // namespace halyard::device_server
