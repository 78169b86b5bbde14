// A server in this process, and a client that talks to it byte by byte over a socket: over TCP, because the
// ends of a connection are told apart there as between machines, or over a Unix socket.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "connection.h"
#include "loader.h"
#include "model_control.h"
#include "repository.h"
#include "scheduler.h"
#include "server.h"

namespace halyard::tools::serve::testing_support {

// For what must come, on a loaded machine. HALYARD_TEST_PATIENCE is another number of seconds.
inline const std::chrono::seconds kPatience([] {
  const char* const given = std::getenv("HALYARD_TEST_PATIENCE");
  return given ? std::max(1, std::atoi(given)) : 60;
}());
// For what must not come: a limit that is reached later than patience ends.
inline const std::chrono::seconds kForever = 10 * kPatience;

// A pair of connected sockets: the client's and the server's.
inline std::pair<int, int> connected(bool is_unix = false) {
  int ends[2] = {-1, -1};
  if (is_unix) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {ends[0], ends[1]};
  }
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener, plain, size), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  EXPECT_EQ(::getsockname(listener, plain, &size), 0);
  ends[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(ends[0], plain, size), 0);
  ends[1] = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  ::close(listener);
  return {ends[0], ends[1]};
}

// One answer, as it came.
struct Answer {
  unsigned status = 0;  // 0: the connection ended before its header did
  std::string head;     // with its line ends
  std::string body;
  int interim = 0;  // answers "100 Continue" before it
  bool has(std::string_view line) const {
    return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
  }
  bool closes() const { return has("Connection: close"); }
};

class Client {
 public:
  explicit Client(int descriptor) : descriptor_(descriptor) {}
  Client(Client&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), got_(std::move(other.got_)) {}
  Client& operator=(Client&&) = delete;
  ~Client() { close(); }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return;  // the server has closed; what it has said tells why
      bytes.remove_prefix(static_cast<size_t>(size));
    }
  }
  void end() { ::shutdown(descriptor_, SHUT_WR); }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  // Whether more bytes have come within the time; they are kept for the next answer().
  bool hears(std::chrono::milliseconds time) {
    pollfd state = {.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (::poll(&state, 1, static_cast<int>(time.count())) <= 0) return false;
    char bytes[64 << 10];
    const ssize_t size = ::recv(descriptor_, bytes, sizeof bytes, 0);
    if (size > 0) got_.append(bytes, static_cast<size_t>(size));
    return size > 0;
  }
  std::string_view heard() const { return got_; }

  // The next answer. `to_head`: it answers a request HEAD, so it has no body.
  Answer answer(bool to_head = false) {
    Answer answer;
    for (;;) {
      const size_t end = got_.find("\r\n\r\n");
      if (end == std::string::npos) {
        if (!hears(kPatience)) return answer;
        continue;
      }
      answer.head = got_.substr(0, end + 2);
      constexpr size_t kStatusAt = std::string_view("HTTP/1.1 ").size();
      std::from_chars(answer.head.data() + kStatusAt, answer.head.data() + answer.head.size(), answer.status);
      if (answer.status != 100) break;
      got_.erase(0, end + 4);
      ++answer.interim;
    }
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    size_t length = 0;
    const size_t at = answer.head.find(kLength);
    EXPECT_NE(at, std::string::npos) << answer.head;
    std::from_chars(answer.head.data() + at + kLength.size(), answer.head.data() + answer.head.size(),
                    length);
    const size_t begin = answer.head.size() + 2;
    if (to_head) length = 0;
    while (got_.size() < begin + length && hears(kPatience)) {
    }
    answer.body = got_.substr(begin, length);
    EXPECT_EQ(answer.body.size(), length) << "the body is cut off";
    got_.erase(0, begin + length);
    return answer;
  }
  // Whether the server ends the connection, and says nothing more.
  bool is_closed() {
    while (hears(kPatience)) {
    }
    char byte = 0;
    return got_.empty() && ::recv(descriptor_, &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN;
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  std::string got_;
};

struct HostOptions {
  ServerLimits limits = {.body = 1 << 20, .connections = 64, .request = kForever, .idle = kForever};
  uint64_t memory = 64 << 20;
  Access access;
  size_t queue = 4;
  std::vector<std::pair<std::string, std::string>> models;  // names and files
  bool has_control = false;
};

// Serves on three threads, as vm-serve does with --threads=2.
class Host {
 public:
  explicit Host(HostOptions options = {})
      : scheduler(runtime, log, {.calls = 2, .contexts = 1, .queue = options.queue, .batch_delay = {}}),
        repository(runtime, scheduler, log, sources(options), "", {}) {
    EXPECT_TRUE(make_instance(flags, program));
    EXPECT_TRUE(repository.start());
    server = std::make_unique<Server>(runtime, scheduler, repository, metrics, log, options.limits,
                                      options.memory, options.access);
    if (options.has_control) server->control = &control;
    for (std::thread& thread : threads_) thread = std::thread([this] { io.run(); });
  }
  ~Host() {
    server->close_all();
    const auto end = Clock::now() + kPatience;
    // A call that was abandoned has its arguments until it has ended.
    while ((metrics.connections.load() > 0 || metrics.request_bytes.load() > 0) && Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(metrics.connections.load(), 0);
    EXPECT_EQ(metrics.request_bytes.load(), 0) << "memory stays reserved";
    work_.reset();
    io.stop();
    for (std::thread& thread : threads_) thread.join();
    EXPECT_TRUE(loader.finish(Clock::now() + kPatience));
  }

  Client connect(bool is_unix = false, bool is_loopback = true) {
    const auto [client, end] = connected(is_unix);
    ClientSocket socket(SocketExecutor(io.get_executor()));
    socket.assign(
        boost::asio::generic::stream_protocol(is_unix ? AF_UNIX : AF_INET, is_unix ? 0 : IPPROTO_TCP), end);
    start_connection(*server, std::move(socket), is_loopback);
    return Client(client);
  }
  // The only answer to a request on a connection of its own.
  Answer ask(std::string_view request) {
    Client client = connect();
    client.send(request);
    return client.answer();
  }
  // The same; it returns after the request has been logged.
  Answer ask_and_end(std::string_view request) {
    Client client = connect();
    client.send(request);
    client.end();
    Answer answer = client.answer();
    EXPECT_TRUE(client.is_closed());
    return answer;
  }

  Flags flags;
  Program program;
  Metrics metrics;
  Log log{metrics};
  boost::asio::io_context io{3};
  RequestTraces traces{{}, std::nullopt};
  Runtime runtime{flags, program, metrics, traces, io, kPatience};
  Scheduler scheduler;
  Repository repository;
  Loader loader;
  ModelControl control{repository, loader};
  std::unique_ptr<Server> server;

 private:
  static std::vector<ModelSource> sources(const HostOptions& options) {
    std::vector<ModelSource> sources;
    const auto add = [&](const std::string& name, const std::string& file) {
      sources.push_back(
          {.name = name, .version = "1", .file = file, .function = "", .parameters = {}, .is_named = true});
    };
    add("mul", HALYARD_SOURCE_DIR "/examples/inline_mul.vmasm");
    for (const auto& [name, file] : options.models) add(name, file);
    return sources;
  }

  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io.get_executor()};
  std::thread threads_[3];
};

// Whether the condition holds before patience ends.
inline bool becomes(const auto& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace halyard::tools::serve::testing_support
