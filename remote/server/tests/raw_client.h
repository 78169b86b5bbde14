// A client that sends whatever a test wants, frame by frame, to a server in this process.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "remote/message.h"
#include "server/server.h"

namespace halyard::device_server {

namespace wire = schema::remote;

// A server of this tree's local devices.
class ServerOfTest {
 public:
  explicit ServerOfTest(ServerOptions options = {}) {
    if (options.devices.empty()) options.devices = {"local-task?workers=1", "local-sync", "null"};
    const std::string folder = HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-";
    options.driver_files = {folder + "local.so", folder + "null.so"};
    // The same tests with a process for each connection.
    options.isolates = std::getenv("HALYARD_TEST_ISOLATES") != nullptr;
    auto made = Server::create(std::move(options));
    if (!made) throw std::runtime_error(made.error().message);
    server_ = std::move(*made);
    thread_ = std::thread([this] { server_->run(3); });
  }
  ~ServerOfTest() {
    server_->stop();
    thread_.join();
  }
  Server& operator*() { return *server_; }
  Server* operator->() { return server_.get(); }
  // One of the numbers of its metrics.
  uint64_t metric(const std::string& name) const {
    const std::string text = server_->metrics(), line = "\nhalyard_device_" + name + " ";
    const size_t at = text.find(line);
    return at == std::string::npos ? UINT64_MAX : std::stoull(text.substr(at + line.size()));
  }
  // Waits until a metric has the value.
  bool becomes(const std::string& name, uint64_t value) const {
    for (int i = 0; i < 12000; ++i) {
      if (metric(name) == value) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

 private:
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

class RawClient {
 public:
  explicit RawClient(ServerOfTest& server, const char* device = "local-task") {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = remote::Descriptor(ends[0]);
    server->take(remote::Descriptor(ends[1]), nullptr);
    if (device) greet(device);
  }
  // Over a socket whose other end the test gives to a server.
  explicit RawClient(remote::Descriptor socket) : socket_(std::move(socket)) {}
  int socket() const { return socket_.get(); }

  void greet(const char* device) {
    send([&](remote::Message& message) {
      const auto name = message.text(device);
      return wire::CreateHello(message.builder(), remote::kOldestVersion, remote::kNewestVersion, name);
    });
    const wire::ToClient* const answer = receive();
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->body_type(), wire::ToClientBody::Welcome);
  }
  bool send_bytes(const void* bytes, size_t size) {
    const auto* at = static_cast<const char*>(bytes);
    while (size > 0) {
      const ssize_t count = ::send(socket_.get(), at, size, MSG_NOSIGNAL);
      if (count <= 0) return false;
      at += count;
      size -= static_cast<size_t>(count);
    }
    return true;
  }
  bool send_frame(remote::Bytes message, remote::Bytes data = {}) {
    const uint32_t header[2] = {static_cast<uint32_t>(message.size()), static_cast<uint32_t>(data.size())};
    return send_bytes(header, sizeof header) && send_bytes(message.data(), message.size()) &&
           send_bytes(data.data(), data.size());
  }
  // `build(message)` returns the body.
  template <typename Build>
  bool send(Build build, remote::Bytes data = {}) {
    remote::Message message;
    const auto body = build(message);
    return send_frame(message.to_server(body), data);
  }
  // The next message; null: the server has ended the connection. The bytes of it are in data().
  const wire::ToClient* receive() {
    uint32_t header[2];
    if (!receive_bytes(header, sizeof header)) return nullptr;
    message_.resize(header[0]);
    data_.resize(header[1]);
    if (!receive_bytes(message_.data(), message_.size()) || !receive_bytes(data_.data(), data_.size()))
      return nullptr;
    return remote::verified_to_client(message_);
  }
  const std::vector<uint8_t>& data() const { return data_; }
  // The failure with which the server refuses the client; code OK: something else has come.
  remote::Failure refusal() {
    while (const wire::ToClient* const message = receive())
      if (const wire::Refused* const refused = message->body_as_Refused())
        return remote::failure_of(refused->status());
    return {HALYARD_OK, "no refusal"};
  }
  // The outcome of a submission, after other messages. Adds the pongs among these to `pongs`.
  remote::Failure completion(uint64_t submission, size_t* pongs = nullptr) {
    while (const wire::ToClient* const message = receive()) {
      if (pongs && message->body_as_Pong()) ++*pongs;
      if (const wire::Refused* const refused = message->body_as_Refused())
        return remote::failure_of(refused->status());
      if (const wire::Completions* const several = message->body_as_Completions())
        if (const auto* const numbers = several->submissions())
          if (std::find(numbers->begin(), numbers->end(), submission) != numbers->end())
            return {HALYARD_OK, ""};
      const wire::Completed* const completed = message->body_as_Completed();
      if (completed && completed->submission() == submission) return remote::failure_of(completed->status());
    }
    return {HALYARD_UNAVAILABLE, "the server has ended the connection"};
  }

  // ---- Usual messages

  void create_memory(uint64_t id, uint64_t size, uint64_t request = 0, uint64_t owner = 0) {
    send([&](remote::Message& message) {
      const auto memory = wire::CreateRequest(message.builder(), 0x30, 0xC03, UINT64_MAX, size, owner);
      return wire::CreateMemoryCreate(message.builder(), request, id, memory);
    });
  }
  void create_semaphore(uint64_t id) {
    send([&](remote::Message& message) { return wire::CreateSemaphoreCreate(message.builder(), id, 0); });
  }
  void read(uint64_t request, uint64_t id, uint64_t offset, uint64_t length) {
    send([&](remote::Message& message) {
      return wire::CreateMemoryRead(message.builder(), request, id, offset, length, 1 << 20, false);
    });
  }
  void submit_barrier(uint64_t id, std::vector<wire::Point> waits, std::vector<wire::Point> signals,
                      std::vector<wire::Point> created = {}) {
    send([&](remote::Message& message) {
      flatbuffers::FlatBufferBuilder& builder = message.builder();
      const auto waited = builder.CreateVectorOfStructs(waits),
                 signalled = builder.CreateVectorOfStructs(signals),
                 semaphores = builder.CreateVectorOfStructs(created);
      const auto barrier = wire::CreateBarrier(builder).Union();
      return wire::CreateSubmit(builder, id, UINT64_MAX, waited, signalled, wire::Operation::Barrier, barrier,
                                semaphores);
    });
  }
  void submit_copy(uint64_t id, const wire::Range& source, const wire::Range& target) {
    send([&](remote::Message& message) {
      flatbuffers::FlatBufferBuilder& builder = message.builder();
      const auto copy = wire::CreateCopy(builder, &source, &target).Union();
      return wire::CreateSubmit(builder, id, UINT64_MAX, 0, 0, wire::Operation::Copy, copy);
    });
  }

 private:
  bool receive_bytes(void* bytes, size_t size) {
    auto* at = static_cast<char*>(bytes);
    while (size > 0) {
      pollfd wait = {socket_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 20000) != 1) {
        ADD_FAILURE() << "the server says nothing for 20 s";
        return false;
      }
      const ssize_t count = ::recv(socket_.get(), at, size, 0);
      if (count <= 0) return false;
      at += count;
      size -= static_cast<size_t>(count);
    }
    return true;
  }

  remote::Descriptor socket_;
  std::vector<uint8_t> message_;
  std::vector<uint8_t> data_;
};

}  // namespace halyard::device_server
