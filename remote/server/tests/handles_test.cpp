// Numbers of objects and of work: guessed, of others, used twice, too many, and work that waits in a circle.
#include "attacks.h"
#include "halyard/driver.h"

namespace halyard::device_server {
namespace {

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
    client.submit_barrier(1, {}, {}, created);
    expect_refused(client, HALYARD_INVALID_ARGUMENT, "exists already, or is no number of an object");
  }
}

TEST(Attacks, HandlesAreLimited) {
  ServerOptions options;
  options.limits.handles = 100;
  ServerOfTest server(options);
  RawClient client(server);
  for (uint64_t id = 1; id <= 101; ++id) client.create_semaphore(id);
  expect_refused(client, HALYARD_RESOURCE_EXHAUSTED, "--max_handles");
}

TEST(Attacks, SemaphoresOfASubmissionAreLimited) {
  ServerOptions options;
  options.limits.handles = 100;
  ServerOfTest server(options);
  RawClient client(server);
  std::vector<wire::Point> created;
  for (uint64_t number = 1; number <= 101; ++number) created.emplace_back(number, 0);
  client.submit_barrier(1, {}, {}, created);
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

}  // namespace
}  // namespace halyard::device_server
