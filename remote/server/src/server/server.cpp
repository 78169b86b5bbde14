// Accepts connections, and finds out who the clients are.
#include "server/server.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>

#include "server/failures.h"
#include "server/page.h"
#include "server/session.h"
#include "server/shared.h"
#include "server/threads.h"

namespace halyard::device_server {

namespace {

namespace asio = boost::asio;

constexpr auto kPatience = std::chrono::seconds(30);
constexpr int kPages = 64;  // at once

// Devices of the processor would run machine code of clients unless they are told not to.
std::string without_native(std::string uri) {
  return is_local(uri) ? with_option(std::move(uri), "native", "0") : uri;
}

std::string user_name(uid_t user) {
  passwd entry = {};
  passwd* found = nullptr;
  char buffer[4096];
  ::getpwuid_r(user, &entry, buffer, sizeof buffer, &found);
  return found ? fmt::format("user {}", found->pw_name) : fmt::format("uid {}", user);
}

class AsioServer final : public Server {
 public:
  AsioServer(const ServerOptions& options, std::vector<std::string> uris, Registries make_registry,
             Files files)
      : users_(options.users),
        shared_(
            options.limits, std::move(uris), std::move(make_registry), options.allows_native,
            std::move(files), options.log ? options.log : [](std::string_view) {}) {}
  ~AsioServer() override { stop(); }

  void listen(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) override {
    await_connection(std::make_shared<Listening>(
        asio::posix::stream_descriptor(shared_.io, socket.release()),
        [this, tls = std::move(tls)](remote::Descriptor client) { take(std::move(client), tls); }));
  }

  void listen_page(remote::Descriptor socket) override {
    await_connection(std::make_shared<Listening>(
        asio::posix::stream_descriptor(shared_.io, socket.release()), [this](remote::Descriptor client) {
          if (shared_.pages.fetch_add(1) >= kPages) {
            shared_.pages.fetch_sub(1);
            return;
          }
          sockaddr_storage own = {};
          socklen_t size = sizeof own;
          ::getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &size);
          asio::generic::stream_protocol::socket connected(shared_.io);
          connected.assign(asio::generic::stream_protocol(own.ss_family, 0), client.release());
          // Counted until the answer is given, or given up.
          const std::shared_ptr<void> counted(nullptr, [this](void*) { shared_.pages.fetch_sub(1); });
          answer_page(std::move(connected), [this, counted] { return metrics(); });
        }));
  }

  void take(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) override {
    const int descriptor = socket.get();
    std::string key, name;
    sockaddr_storage own = {};
    socklen_t size = sizeof own;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size);
    Status refusal;
    if (own.ss_family == AF_UNIX) {
      const remote::Result<remote::PeerUser> peer = remote::peer_user(descriptor);
      const uid_t user = peer ? peer->user : static_cast<uid_t>(-1);
      key = fmt::format("uid:{}", user);
      name = user_name(user);
      if (!peer || (user != ::geteuid() && user != 0 && std::ranges::find(users_, user) == users_.end()))
        refusal = Status(Code::PERMISSION_DENIED,
                         fmt::format("{} may not use this server; add --allow_user to vm-device", name));
    } else if (!tls) {
      key = "tcp";
      name = "TCP without TLS";
    }
    shared_.counts.accepted.fetch_add(1, std::memory_order_relaxed);
    std::unique_ptr<remote::Tls> layer;
    if (tls) layer = std::make_unique<remote::Tls>(std::move(tls), "");
    ReceivingThread& receiver = shared_.receiver();
    auto stream = std::make_shared<remote::Stream>(receiver.io, std::move(socket), std::move(layer),
                                                   remote::Stream::Full::queue, kPatience);
    const auto session =
        std::make_shared<Session>(shared_, receiver, std::move(stream), std::move(key), std::move(name));
    session->start();
    if (refusal.ok()) return;
    shared_.counts.refused.fetch_add(1, std::memory_order_relaxed);
    shared_.log(refusal.text());
    session->end(refusal);
  }

  void run(unsigned threads) override {
    std::vector<std::thread> receivers;
    std::vector<asio::executor_work_guard<asio::io_context::executor_type>> receiving;
    for (ReceivingThread& each : shared_.receivers) {
      receiving.push_back(asio::make_work_guard(each.io));
      receivers.emplace_back([&each] { each.run(); });
    }
    threads_.run(threads, shared_.limits.connections);
    end_sessions();
    for (ReceivingThread& each : shared_.receivers) each.io.stop();
    for (std::thread& thread : receivers) thread.join();
  }

  // Handlers may wait for work, so that is asked to stop first.
  void stop() override {
    is_stopped_.store(true);
    for (const std::shared_ptr<Session>& session : shared_.sessions.all())
      session->stop_work(Code::CANCELLED);
    threads_.stop();
  }

  std::string metrics() const override {
    std::string text;
    const auto add = [&](const char* name, const char* kind, const char* help, uint64_t value) {
      text += fmt::format(
          "# HELP halyard_device_{0} {2}\n# TYPE halyard_device_{0} {1}\nhalyard_device_{0} {3}\n", name,
          kind, help, value);
    };
    const Counts& counts = shared_.counts;
    add("connections", "gauge", "Connections of clients now.", shared_.clients.connections());
    add("connections_accepted_total", "counter", "Connections that were accepted.", counts.accepted);
    add("connections_refused_total", "counter", "Connections that were refused.", counts.refused);
    add("protocol_errors_total", "counter", "Connections that ended because the client broke the protocol.",
        counts.broken);
    add("submissions_total", "counter", "Submissions of clients.", counts.submissions);
    add("submission_failures_total", "counter", "Submissions that failed.", counts.failures);
    add("received_bytes_total", "counter", "Bytes of messages of clients.", counts.received_bytes);
    add("sent_bytes_total", "counter", "Bytes of messages to clients.", counts.sent_bytes);
    add("file_bytes_total", "counter", "Bytes of files that clients did not have to send.",
        counts.file_bytes);
    add("threads", "gauge", "Threads that handle messages.", threads_.running());
    add("open_devices", "gauge", "Devices that are open.", shared_.devices.open_devices());
    add("memory_bytes", "gauge", "Bytes that clients use.", shared_.clients.memory_bytes());
    add("cached_bytes", "gauge", "Bytes of constants and code that are kept for clients.",
        shared_.clients.cached_bytes());
    return text;
  }

 private:
  struct Listening {
    using Accepted = std::function<void(remote::Descriptor)>;
    Listening(asio::posix::stream_descriptor given, Accepted taker)
        : socket(std::move(given)), accepted(std::move(taker)), pause(socket.get_executor()) {}
    asio::posix::stream_descriptor socket;
    const Accepted accepted;
    asio::steady_timer pause;
  };

  void await_connection(std::shared_ptr<Listening> listening) {
    asio::posix::stream_descriptor& socket = listening->socket;
    socket.async_wait(asio::posix::stream_descriptor::wait_read,
                      [this, listening = std::move(listening)](boost::system::error_code error) mutable {
                        if (!error && !is_stopped_.load()) accept(std::move(listening));
                      });
  }

  void accept(std::shared_ptr<Listening> listening) {
    remote::Descriptor client(
        ::accept4(listening->socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client.get() >= 0) {
      listening->accepted(std::move(client));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      // Others may close descriptors meanwhile.
      listening->pause.expires_after(std::chrono::milliseconds(100));
      asio::steady_timer& pause = listening->pause;
      pause.async_wait([this, listening = std::move(listening)](boost::system::error_code error) mutable {
        if (!error) await_connection(std::move(listening));
      });
      return;
    }
    await_connection(std::move(listening));
  }

  // Clients are told why the connection ends. Sessions use what this object has, so they end before it.
  void end_sessions() {
    constexpr auto kLongest = std::chrono::seconds(3);
    for (const std::shared_ptr<Session>& session : shared_.sessions.all())
      session->end(Status(Code::UNAVAILABLE, "the server is ending"));
    shared_.io.restart();
    const auto begin = std::chrono::steady_clock::now();
    while (!shared_.sessions.all().empty() && std::chrono::steady_clock::now() - begin < kLongest)
      shared_.io.run_for(std::chrono::milliseconds(1));
  }

  const std::vector<uid_t> users_;
  std::atomic<bool> is_stopped_ = false;
  Shared shared_;
  Threads threads_{shared_.io, shared_.log};
};

}  // namespace

// What happens otherwise, such as a timer, is no reason to poll: only a session's frames are.
void ReceivingThread::run() {
  while (!io.stopped()) {
    if (!polling.poll([this] { return io.poll() > 0 || io.stopped(); })) io.run_one();
    while (io.poll() > 0) {
    }
  }
}

remote::Result<std::unique_ptr<Server>> Server::create(ServerOptions options) {
  const Registries make_registry = [files = options.driver_files, log = options.log](Ref<Tracer> tracer) {
    hal::RegistryOptions registry;
    registry.libraries = files;
    registry.use_environment = registry.use_default_folders = false;
    if (log) registry.log = [log](int32_t, std::string_view line) { log(line); };
    registry.tracer = std::move(tracer);
    return hal::DriverRegistry::create(std::move(registry));
  };
  std::vector<std::string> uris = options.devices;
  if (!options.allows_native) std::ranges::transform(uris, uris.begin(), without_native);
  Result<Files> files = Files::create(options.file_folders);
  if (!files)
    return remote::fail(static_cast<halyard_status_code_t>(files.error().code()), "{}",
                        to_wire(files.error()).message);
  auto server = std::make_unique<AsioServer>(options, uris, make_registry, *std::move(files));
  const Ref<hal::DriverRegistry> drivers = make_registry(nullptr);
  // A wrong device is found now, not by the first client.
  for (const std::string& uri : uris)
    if (const auto opened = drivers->open_device(uri); !opened)
      return remote::fail(static_cast<halyard_status_code_t>(opened.error().code()),
                          "cannot offer device '{}': {}", uri, opened.error().text());
  return server;
}

}  // namespace halyard::device_server
