// vm-serve: serves models over HTTP and gRPC with the Open Inference Protocol (KServe V2).
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

#include "common/interrupt.h"
#include "common/program.h"
#include "common/program_flags.h"
#include "common/systemd.h"
#include "common/tool.h"
#include "common/untrusted.h"
#include "connection.h"
#include "grpc_server.h"
#include "listener.h"
#include "loader.h"
#include "repository.h"
#include "scheduler.h"
#include "serve_flags.h"
#include "server.h"

namespace halyard::tools {

namespace {

namespace asio = boost::asio;
using namespace serve;

constexpr const Flag* kModelFlags[] = {&flag::served_model, &flag::models, &flag::batch,
                                       &flag::batch_delay,  &flag::watch,  &flag::ready,
                                       &flag::model_control};
constexpr const Flag* kConnectionFlags[] = {
    &flag::host,       &flag::port,         &flag::unix_socket,     &flag::grpc,
    &flag::allow_host, &flag::allow_origin, &flag::max_connections, &flag::idle_timeout};
constexpr const Flag* kLimitFlags[] = {&flag::threads,
                                       &flag::contexts,
                                       &flag::queue,
                                       &flag::request_timeout,
                                       &flag::load_timeout,
                                       &flag::max_body,
                                       &flag::max_request_memory,
                                       &flag::drain_timeout};
constexpr const Flag* kServedLoadingFlags[] = {&flag::parameters, &flag::parameter_mode, &flag::module_mode,
                                               &flag::verify,     &flag::max_memory,     &flag::untrusted,
                                               &flag::trace,      &flag::trace_rate};
constexpr const Flag* kLogFlags[] = {&flag::log_requests};

constexpr FlagGroup kGroups[] = {
    {"Models", kModelFlags},
    {"Connections", kConnectionFlags},
    {"Limits", kLimitFlags},
    {"Logs", kLogFlags},
    {"Devices", kDeviceFlags},
    {"Loading", kServedLoadingFlags},
    {"From other runtimes", kForeignFlags},
};

constexpr ExitCode kExitCodes[] = {
    {0, "Ended by SIGTERM or Ctrl-C; every accepted request was answered."},
    {1,
     "The server could not start, or requests were cancelled at --drain_timeout; standard error says which."},
    {kInterrupted, "Ended by a second Ctrl-C, or by a Ctrl-C while the first models were being loaded."},
    {kTerminated, "Ended by a second SIGTERM, or by a SIGTERM while the first models were being loaded."},
};

constexpr ToolDescription kTool = {
    "vm-serve",
    "vm-serve --model=NAME=FILE [--model=...] | --models=FOLDER [flags]",
    "Serves models over HTTP, and with --grpc over gRPC, with the Open Inference Protocol (KServe V2) and "
    "binary tensors. GET / is a "
    "page for trying the models, GET /metrics is for Prometheus. SIGHUP loads changed models. SIGTERM ends "
    "the server after it has answered its requests. More: docs/serving.md.",
    kGroups,
    "  vm-serve --model=mul=examples/inline_mul.vmasm\n"
    "  curl http://127.0.0.1:8080/v2/models/mul/infer -d '{\"inputs\": [\n"
    "    {\"name\": \"input0\", \"datatype\": \"FP32\", \"shape\": [2], \"data\": [3, 4]},\n"
    "    {\"name\": \"input1\", \"datatype\": \"FP32\", \"shape\": [2], \"data\": [10, 100]}]}'\n"
    "  vm-serve --models=/srv/models --device=local-task --port=9000 --batch=64 --batch_delay=2ms\n"
    "  vm-serve --model=net=net.vmfb --parameters=model=net.irpa --unix_socket=/run/halyard/serve.sock\n",
    kExitCodes};

// Values of the flags, or their defaults.
struct Settings {
  ServerLimits limits;
  Access access;
  ScheduleLimits schedule;
  uint64_t request_memory = 0;
  Clock::duration drain{};
  Clock::duration load{};
  std::optional<Clock::duration> watch;
  std::optional<uint64_t> trace_rate;
  Readiness readiness;
  std::vector<ModelSource> models;
  std::map<std::string, uint64_t> batches;
};

Result<size_t> at_least_one(const Flags& flags, const Number& flag) {
  const uint64_t number = TOOL_TRY(flags[flag]);
  if (number == 0) return wrong_value(flag, "0", "at least 1");
  return number;
}

Result<Clock::duration> duration_of(const Flags& flags, const Duration& flag, Clock::duration otherwise) {
  const auto given = TOOL_TRY(flags[flag]);
  return given ? std::chrono::duration_cast<Clock::duration>(*given) : otherwise;
}

Result<std::map<std::string, uint64_t>> batches_of(const Flags& flags) {
  std::map<std::string, uint64_t> batches;
  for (const std::string& text : flags[flag::batch]) {
    const size_t equals = text.find('=');
    const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    const std::string_view number =
        std::string_view(text).substr(equals == std::string::npos ? 0 : equals + 1);
    uint64_t rows = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rows);
    if (number.empty() || error != std::errc() || end != number.data() + number.size() || rows == 0)
      return wrong_value(flag::batch, text, "a number of rows from 1 on, or NAME=N for one model");
    batches[name] = rows;
  }
  return batches;
}

Result<Settings> settings_of(const Flags& flags) {
  using std::chrono::seconds;
  TOOL_TRY(check_only_flags(flags, "models are", flag::served_model));
  Settings settings;
  for (const std::string& text : flags[flag::served_model])
    settings.models.push_back(TOOL_TRY(parse_model_flag(text)));
  if (settings.models.empty() && !flags.has(flag::models))
    return fail(HALYARD_INVALID_ARGUMENT,
                "no model given; pass one with {}=NAME=FILE, or a folder with {}=FOLDER", flag::served_model,
                flag::models);
  settings.readiness = TOOL_TRY(parse_readiness(flags[flag::ready]));
  settings.batches = TOOL_TRY(batches_of(flags));
  settings.schedule.calls = flags.has(flag::threads) ? TOOL_TRY(at_least_one(flags, flag::threads))
                                                     : std::max(std::thread::hardware_concurrency(), 1u);
  settings.schedule.contexts =
      flags.has(flag::contexts) ? TOOL_TRY(at_least_one(flags, flag::contexts)) : settings.schedule.calls;
  settings.schedule.queue = TOOL_TRY(at_least_one(flags, flag::queue));
  settings.schedule.batch_delay = TOOL_TRY(duration_of(flags, flag::batch_delay, {}));
  settings.limits.body = TOOL_TRY(flags[flag::max_body]).value_or(64 << 20);
  settings.limits.connections = TOOL_TRY(at_least_one(flags, flag::max_connections));
  settings.limits.request = TOOL_TRY(duration_of(flags, flag::request_timeout, seconds(60)));
  settings.limits.idle = TOOL_TRY(duration_of(flags, flag::idle_timeout, seconds(75)));
  for (const std::string& host : flags[flag::allow_host]) {
    if (host != "*" && !is_host(host))
      return wrong_value(flag::allow_host, host, "a name or an address without a port, or *");
    settings.access.hosts.push_back(host);
  }
  for (const std::string& origin : flags[flag::allow_origin]) {
    if (origin != "*" && !is_origin(origin))
      return wrong_value(flag::allow_origin, origin,
                         "a scheme and a host, such as https://example.com, or *");
    settings.access.origins.push_back(origin);
  }
  settings.request_memory = TOOL_TRY(flags[flag::max_request_memory]).value_or(1 << 30);
  settings.load = TOOL_TRY(duration_of(flags, flag::load_timeout,
                                       flags[flag::untrusted] ? kUntrustedTime : std::chrono::minutes(10)));
  settings.drain = TOOL_TRY(duration_of(flags, flag::drain_timeout, seconds(30)));
  if (flags.has(flag::trace_rate) && !flags.has(flag::trace))
    return fail(HALYARD_INVALID_ARGUMENT,
                "{} selects the requests to record, but the file to record them in is missing; add {}=FILE",
                flag::trace_rate, flag::trace);
  if (flags.has(flag::trace_rate)) settings.trace_rate = TOOL_TRY(flags[flag::trace_rate]);
  if (flags.has(flag::watch)) settings.watch = TOOL_TRY(duration_of(flags, flag::watch, {}));
  return settings;
}

Result<std::vector<Listening>> listen(const Flags& flags) {
  std::vector<Listening> sockets;
  for (const int descriptor : TOOL_TRY(inherited_sockets())) sockets.push_back(inherited(descriptor));
  const std::string path = flags[flag::unix_socket], host = flags[flag::host];
  if (flags.has(flag::unix_socket))
    sockets.push_back(TOOL_TRY(listen_unix(path, fmt::format("{}={}", flag::unix_socket, path))));
  if (!sockets.empty() && !flags.has(flag::port)) return sockets;
  const uint64_t port = TOOL_TRY(flags[flag::port]);
  if (port > kMaxPort)
    return wrong_value(flag::port, std::to_string(port), fmt::format("a number from 0 to {}", kMaxPort));
  sockets.push_back(TOOL_TRY(listen_tcp(host, port, fmt::format("{}={}", flag::host, host))));
  return sockets;
}

// The address of --grpc, in the form of gRPC's own names.
Result<Listening> listen_grpc(const std::string& text) {
  constexpr std::string_view kUnix = "unix:";
  const std::string given = fmt::format("{}={}", flag::grpc, text);
  if (text.starts_with(kUnix)) return listen_unix(text.substr(kUnix.size()), given);
  const size_t colon = text.rfind(':');
  std::string_view host = std::string_view(text).substr(0, colon);
  const std::string_view digits =
      std::string_view(text).substr(colon == std::string::npos ? text.size() : colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  uint64_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (host.empty() || digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return wrong_value(flag::grpc, text, "HOST:PORT, such as 127.0.0.1:8081, or unix:PATH");
  Listening socket = TOOL_TRY(listen_tcp(std::string(host), port, given));
  constexpr std::string_view kScheme = "http://";
  if (socket.address.starts_with(kScheme)) socket.address.erase(0, kScheme.size());
  return socket;
}

// Every connection needs a descriptor.
void raise_descriptor_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Makes the C library return large blocks to the system when they are freed, even after many such blocks.
// Otherwise the process would keep several times the memory that --max_request_memory allows for requests.
// Smaller blocks are kept for the next request.
void return_large_blocks() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 2 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

// Makes the signals that end the process end it at once, with the exit status of shells. Also needed for the
// first process of a container, for which signals have no default actions.
void end_at_once_on_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { ::_exit(128 + signal); };
  for (const int signal : {SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
}

// Handles signals, reloading, and shutdown, on the threads of the io_context. Models are loaded by
// the loader.
class Operations {
 public:
  using Signals = asio::basic_signal_set<asio::io_context::executor_type>;

  // Catches signals from now on. `hangup` is SIGHUP, which is caught already.
  // `grpc` may be null.
  Operations(Server& server, GrpcServer* grpc, std::vector<std::shared_ptr<Listener>> listeners,
             const Settings& settings, const Notifier& notifier, Signals& hangup, Loader& loader)
      : server_(server),
        grpc_(grpc),
        unended_(grpc ? 2 : 1),
        listeners_(std::move(listeners)),
        settings_(settings),
        notifier_(notifier),
        strand_(server.runtime.io.get_executor()),
        ending_(strand_, SIGTERM, SIGINT),
        hangup_(hangup),
        drain_timer_(strand_),
        watch_timer_(strand_),
        watchdog_timer_(strand_),
        clients_timer_(strand_),
        loader_(loader) {}

  void start() {
    await_end();
    await_hangup();
    if (settings_.watch) await_change();
    if (notifier_.watchdog()) feed_watchdog();
    look_at_clients();
  }
  // Called when nothing else is running. False: a model is still being loaded and is not waited for, so the
  // objects that it uses must stay.
  bool finish() { return loader_.finish(drain_end_); }
  bool has_cancelled() const { return has_cancelled_; }

 private:
  void await_end() {
    ending_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (std::exchange(is_ending_, true)) std::_Exit(128 + signal);
      // From now on a signal needs no handler of the io_context.
      boost::system::error_code ignored;
      (void)ending_.clear(ignored);
      end_at_once_on_signals();
      server_.log.info("draining", {{"connections", server_.metrics.connections.load()}});
      notifier_.send("STOPPING=1\nSTATUS=Answering the last requests");
      for (const auto& listener : listeners_) listener->stop();
      drain_end_ = Clock::now() + settings_.drain;
      drain_timer_.expires_at(drain_end_);
      drain_timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) cancel_all();
      });
      const auto ended = [this] {
        if (--unended_ == 0) server_.runtime.io.stop();
      };
      server_.drain(ended);
      if (grpc_) grpc_->drain(ended);
    });
  }

  void cancel_all() {
    has_cancelled_ = true;
    server_.log.warning("cancelled", {{"connections", server_.metrics.connections.load()}});
    server_.close_all();
    drain_timer_.expires_after(std::chrono::seconds(5));
    drain_timer_.async_wait([this](const boost::system::error_code& stopped) {
      if (!stopped) server_.runtime.io.stop();
    });
  }

  void await_hangup() {
    hangup_.async_wait(asio::bind_executor(strand_, [this](const boost::system::error_code& error, int) {
      if (error) return;
      await_hangup();
      loader_.post([this] {
        notifier_.send_reloading();
        server_.repository.reload(false);
        notifier_.send("READY=1");
      });
    }));
  }

  void await_change() {
    watch_timer_.expires_after(*settings_.watch);
    watch_timer_.async_wait([this](const boost::system::error_code& error) {
      if (error || is_ending_) return;
      loader_.post([this] {
        server_.repository.reload(true);
        asio::post(strand_, [this] { await_change(); });
      });
    });
  }

  void feed_watchdog() {
    notifier_.send("WATCHDOG=1");
    watchdog_timer_.expires_after(*notifier_.watchdog());
    watchdog_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) feed_watchdog();
    });
  }

  void look_at_clients() {
    constexpr std::chrono::milliseconds kInterval(100);
    clients_timer_.expires_after(kInterval);
    clients_timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      server_.look_at_clients();
      constexpr int kLooksForFlush = 10;
      if (++looks_ % kLooksForFlush == 0) server_.runtime.traces.flush();
      look_at_clients();
    });
  }

  using Executor = asio::strand<asio::io_context::executor_type>;
  using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

  Server& server_;
  GrpcServer* const grpc_;
  std::atomic<int> unended_;  // protocols that have connections or calls
  const std::vector<std::shared_ptr<Listener>> listeners_;
  const Settings& settings_;
  const Notifier& notifier_;
  Executor strand_;
  asio::basic_signal_set<Executor> ending_;
  Signals& hangup_;
  Timer drain_timer_;
  Timer watch_timer_;
  Timer watchdog_timer_;
  Timer clients_timer_;
  Loader& loader_;
  Clock::time_point drain_end_ = Clock::time_point::max();
  int looks_ = 0;
  bool is_ending_ = false;
  std::atomic<bool> has_cancelled_ = false;
};

// The server has more threads than concurrent calls, so that a thread is always free for other requests.
void run_threads(asio::io_context& io, size_t calls) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < calls; ++i) threads.emplace_back([&io] { io.run(); });
  io.run();
  for (std::thread& thread : threads) thread.join();
}

Result<int> vm_serve(const Flags& flags) {
  const Settings settings = TOOL_TRY(settings_of(flags));
  // A failed write reports an error instead: to a disconnected client, or beyond the file size limit.
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  end_at_once_on_signals();
  raise_descriptor_limit();
  return_large_blocks();
  const Notifier notifier;
  std::vector<Listening> sockets = TOOL_TRY(listen(flags));
  const vm_serve_grpc_library_t* grpc_library = nullptr;
  std::optional<Listening> grpc_socket;
  if (flags.has(flag::grpc)) {
    grpc_library = TOOL_TRY(open_grpc_library());
    grpc_socket = TOOL_TRY(listen_grpc(flags[flag::grpc]));
  }

  Program program;
  TOOL_TRY(make_instance(flags, program));
  Metrics metrics;
  Log log(metrics);
  program.warnings->tell = [&log](std::string_view text) {
    log.warning("program_warning", {{"warning", std::string(text)}});
  };
  asio::io_context io(static_cast<int>(settings.schedule.calls) + 1);
  Operations::Signals hangup(io.get_executor(),
                             SIGHUP);  // a SIGHUP while models are loaded is handled later
  RequestTraces traces(program.trace, settings.trace_rate);
  const Runtime runtime{flags,  program, metrics,
                        traces, io,      std::max(settings.load, settings.limits.request)};
  Scheduler scheduler(runtime, log, settings.schedule);
  Repository repository(runtime, scheduler, log, settings.models, flags[flag::models], settings.batches);
  TOOL_TRY(repository.start());
  TOOL_TRY(check_names(settings.readiness, repository));
  Server server(runtime, scheduler, repository, metrics, log, settings.limits, settings.request_memory,
                settings.access);
  server.logs_requests = flags[flag::log_requests];
  server.readiness = settings.readiness;

  std::unique_ptr<GrpcServer> grpc;
  if (grpc_library) grpc = TOOL_TRY(GrpcServer::start(server, *grpc_library));

  std::vector<std::shared_ptr<Listener>> listeners;
  for (const Listening& socket : sockets)
    listeners.push_back(std::make_shared<Listener>(server, socket.descriptor,
                                                   [&server](ClientSocket client, bool is_loopback) {
                                                     start_connection(server, std::move(client), is_loopback);
                                                   }));
  if (grpc)
    listeners.push_back(
        std::make_shared<Listener>(server, grpc_socket->descriptor,
                                   [&grpc](ClientSocket client, bool) { grpc->add(std::move(client)); }));
  Loader loader;  // destroyed before the server, because its pending work belongs to connections
  ModelControl control(repository, loader);
  if (flags[flag::model_control]) server.control = &control;
  Operations operations(server, grpc.get(), listeners, settings, notifier, hangup, loader);
  // Signals are caught before the address is printed, because a process that reads the address may send some.
  for (const auto& listener : listeners) listener->start();
  for (const Listening& socket : sockets) {
    fmt::print("vm-serve: {}\n", socket.address);
    log.info("listening", {{"address", socket.address}});
  }
  if (grpc) {
    fmt::print("vm-serve: gRPC at {}\n", grpc_socket->address);
    log.info("listening", {{"address", grpc_socket->address}, {"protocol", "gRPC"}});
  }
  std::fflush(stdout);
  for (const auto& [name, versions] : *repository.models())
    for (const auto& [version, entry] : versions)
      if (!entry.model)
        log.error("model_failed", {{"model", name}, {"version", version}, {"error", entry.why}});
  operations.start();
  notifier.send(fmt::format("READY=1\nSTATUS=Serving {} models", repository.models()->size()));

  run_threads(io, settings.schedule.calls);
  grpc = nullptr;
  const bool has_finished = operations.finish();
  if (program.trace && has_finished) TOOL_TRY(program.trace.finish());
  if (flags.has(flag::unix_socket)) ::unlink(flags[flag::unix_socket].c_str());
  constexpr std::string_view kUnix = "unix:";
  if (grpc_socket && grpc_socket->address.starts_with(kUnix))
    ::unlink(grpc_socket->address.c_str() + kUnix.size());
  if (!has_finished) log.warning("load_abandoned");
  log.info("ended", {{"cancelled", operations.has_cancelled()}});
  const int code = operations.has_cancelled() ? 1 : 0;
  if (has_finished) return code;
  log.flush();
  std::_Exit(code);
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_serve);
}
