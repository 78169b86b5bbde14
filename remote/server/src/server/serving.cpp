// Serves connections in this process: finds out who the clients are, and runs their sessions.
#include "server/serving.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <exception>

#include "server/accepting.h"
#include "server/failures.h"
#include "server/session.h"
#include "server/shared.h"
#include "server/threads.h"

namespace halyard::device_server {

namespace {

namespace asio = boost::asio;

constexpr auto kPatience = std::chrono::seconds(30);

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

class AsioServer final : public ServingProcess {
 public:
  AsioServer(const ServerOptions& options, std::vector<std::string> uris, Registries make_registry,
             Files files, Role role)
      : users_(options.users),
        shared_(
            options.limits, std::move(uris), std::move(make_registry), options.allows_native,
            std::move(files), options.log ? options.log : [](std::string_view) {}, std::move(role)) {}
  ~AsioServer() override { stop(); }

  Result<> try_devices() { return shared_.devices.try_all(); }

  void listen(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) override {
    accept_connections(shared_.io, std::move(socket), [this, tls](remote::Descriptor client) {
      if (!is_stopped_.load()) take(std::move(client), tls);
    });
  }

  void listen_page(remote::Descriptor socket) override {
    accept_page(shared_.io, std::move(socket), [this] { return metrics(); });
  }

  void stop_with(remote::Descriptor line) override {
    const auto watched = std::make_shared<asio::posix::stream_descriptor>(shared_.io, line.release());
    watched->async_wait(asio::posix::stream_descriptor::wait_read,
                        [this, watched](boost::system::error_code error) {
                          if (!error) stop();
                        });
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
    stream->mark_frames(shared_.is_within_frame);
    const auto session =
        std::make_shared<Session>(shared_, receiver, std::move(stream), std::move(key), std::move(name));
    if (refusal.ok()) {
      shared_.strangers.add(session);
      return session->start();
    }
    shared_.counts.refused.fetch_add(1, std::memory_order_relaxed);
    shared_.log(refusal.text());
    session->refuse(refusal);
  }

  void run(unsigned threads) override {
    run(threads, shared_.limits.connections, [] {});
  }

  void run(unsigned threads, size_t more, const std::function<void()>& beat) override {
    std::vector<std::thread> receivers;
    std::vector<asio::executor_work_guard<asio::io_context::executor_type>> receiving;
    for (ReceivingThread& each : shared_.receivers) {
      receiving.push_back(asio::make_work_guard(each.io));
      receivers.emplace_back([this, &each] { each.run(shared_.log); });
    }
    threads_.run(threads, more, [&] {
      measure();
      beat();
    });
    end_sessions();
    for (ReceivingThread& each : shared_.receivers) each.io.stop();
    for (std::thread& thread : receivers) thread.join();
  }

  bool end_stuck(std::chrono::milliseconds patience) override {
    bool found = false;
    for (const std::shared_ptr<Session>& session : shared_.sessions.all())
      if (session->has_stuck_work(patience)) {
        found = true;
        session->end(
            Status(Code::DEADLINE_EXCEEDED,
                   "work has not ended after it was stopped, because its time was over (--max_time)"));
      }
    return found;
  }

  // Handlers may wait for work, so that is asked to stop first.
  void stop() override {
    is_stopped_.store(true);
    for (const std::shared_ptr<Session>& session : shared_.sessions.all())
      session->stop_work(Code::CANCELLED);
    threads_.stop();
  }

  std::string metrics() const override {
    measure();
    Numbers numbers;
    numbers.add_totals(shared_.counts);
    numbers.add_current(shared_.counts);
    numbers.processes = 1;
    if (const auto* const all = dynamic_cast<const AllClients*>(shared_.clients.get())) {
      numbers.connections = all->connections();
      numbers.memory_bytes = all->memory_bytes();
      numbers.cached_bytes = all->cached_bytes();
    }
    return numbers.page();
  }

 private:
  void measure() const {
    shared_.counts.threads = threads_.running();
    shared_.counts.open_devices = shared_.devices.open_devices();
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
    // They have left the closing of their devices to it.
    shared_.io.restart();
    shared_.io.poll();
  }

  const std::vector<uid_t> users_;
  std::atomic<bool> is_stopped_ = false;
  Shared shared_;
  Threads threads_{shared_.io, shared_.log};
};

template <typename T>
remote::Result<T> to_remote(const Status& status) {
  const remote::Failure failure = to_wire(status);
  return remote::fail(failure.code, "{}", failure.message);
}

}  // namespace

// What happens otherwise, such as a timer, is no reason to poll: only a session's frames are.
void ReceivingThread::run(const std::function<void(std::string_view)>& log) {
  while (!io.stopped()) try {
      if (!polling.poll([this] { return io.poll() > 0 || io.stopped(); })) io.run_one();
      while (io.poll() > 0) {
      }
    } catch (const std::exception& error) {
      log(fmt::format("a handler of messages has failed: {}", error.what()));
    }
}

remote::Result<std::unique_ptr<ServingProcess>> ServingProcess::create(const ServerOptions& options,
                                                                       Role role, bool tries_devices) {
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
  if (!files) return to_remote<std::unique_ptr<ServingProcess>>(files.error());
  auto server = std::make_unique<AsioServer>(options, std::move(uris), make_registry, *std::move(files),
                                             std::move(role));
  // A wrong device is found now, not by the first client; and drivers are loaded.
  const Result<> tried = server->try_devices();
  if (!tried && tries_devices) return to_remote<std::unique_ptr<ServingProcess>>(tried.error());
  return server;
}

}  // namespace halyard::device_server
