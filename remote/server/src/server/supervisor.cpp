// One thread does all. A process waits for the next connection in advance: it has loaded the drivers already,
// which could not be shared by a fork. All that a process says is checked, because its driver may have let a
// client in.
#include "server/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <future>
#include <list>
#include <unordered_map>

#include "remote/message.h"
#include "server/accepting.h"
#include "server/client.h"
#include "server/control.h"
#include "server/failures.h"
#include "server/worker.h"

namespace halyard::device_server {

namespace {

namespace asio = boost::asio;
using StreamDescriptor = asio::posix::stream_descriptor;

constexpr size_t kSpare = 1;       // processes that wait for a connection
constexpr size_t kStarting = 4;    // at once
constexpr size_t kWaiting = 1024;  // connections without a process
constexpr size_t kMessagesAtOnce = 16;
constexpr size_t kMostUses = 1 << 20;  // of blobs by one connection
constexpr auto kRetry = std::chrono::seconds(1);
constexpr auto kToEnd = std::chrono::seconds(12);   // after the client has gone
constexpr auto kToStop = std::chrono::seconds(10);  // after stop()
constexpr unsigned kMostThreads = 2;                // of a process, which has one connection

struct UnmapCounts {
  void operator()(Counts* counts) const { ::munmap(counts, sizeof *counts); }
};

std::shared_ptr<Counts> shared_counts() {
  void* const page =
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  return std::shared_ptr<Counts>(new (page) Counts, UnmapCounts());
}

struct Worker {
  explicit Worker(asio::io_context& io) : exited(io), control(io), patience(io) {}
  pid_t process = -1;
  StreamDescriptor exited;  // readable when the process has ended
  StreamDescriptor control;
  remote::Descriptor line;
  std::shared_ptr<Counts> counts;
  asio::steady_timer patience;
  enum class State : uint8_t { starting, ready, serving } state = State::starting;
  std::string why_killed;  // by this process
  // While it serves:
  remote::Descriptor connection;
  bool has_tls = false;
  std::string peer;
  std::shared_ptr<Client> client;  // null: not known yet
  size_t slot = 0;
  std::unordered_map<uint64_t, size_t> uses;  // of blobs, by their offsets
  size_t use_count = 0;
};

struct WaitingConnection {
  remote::Descriptor socket;
  size_t tls = 0;  // its number + 1; 0: none
};

class Supervisor final : public Server {
 public:
  explicit Supervisor(ServerOptions options)
      : options_(std::move(options)),
        clients_(options_.limits, AllClients::Serving::in_others),
        retry_(io_),
        hangups_(io_) {
    if (!options_.log) options_.log = [](std::string_view) {};
  }
  ~Supervisor() override {
    for (const auto& worker : workers_) ::kill(worker->process, SIGKILL);
    for (const auto& worker : workers_) ::waitpid(worker->process, nullptr, 0);
  }

  remote::Result<> prepare();
  void listen(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) override;
  void listen_page(remote::Descriptor socket) override {
    accept_page(io_, std::move(socket), [this] { return text_of_numbers(); });
  }
  void take(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) override;
  void run(unsigned threads) override;
  void stop() override {
    asio::post(io_, [this] { stop_all(); });
  }
  std::string metrics() const override;

 private:
  using WorkerRef = std::shared_ptr<Worker>;

  size_t number_of(const std::shared_ptr<remote::TlsContext>& tls);
  void accepted(remote::Descriptor socket, size_t tls);
  void hand_out();
  void give(const WorkerRef& worker, WaitingConnection connection);
  void end_oldest_stranger();
  bool start();
  void retry_later();
  void await_messages(const WorkerRef& worker);
  void await_exit(const WorkerRef& worker);
  void await_hangups();
  // False: the process breaks the rules.
  bool handle(const WorkerRef& worker, ControlMessage message);
  bool answer(const WorkerRef& worker, const ControlMessage& message);
  bool begin(const WorkerRef& worker, const std::string& names);
  bool find(const WorkerRef& worker, const std::string& digests);
  void kill(const WorkerRef& worker, std::string why);
  void ended(const WorkerRef& worker);
  void report(const Worker& worker, const siginfo_t& end);
  void refuse(int socket, Code code, const std::string& why);
  void stop_all();
  std::string text_of_numbers() const;

  ServerOptions options_;
  asio::io_context io_{1};
  AllClients clients_;
  asio::steady_timer retry_;
  StreamDescriptor hangups_;  // an epoll file of the connections
  std::vector<std::shared_ptr<remote::TlsContext>> tls_;
  std::list<WorkerRef> workers_;  // in the order in which they have got their connections
  std::deque<WaitingConnection> waiting_;
  Numbers ended_;  // of processes that have ended
  unsigned threads_ = 1;
  bool is_retrying_ = false;
  bool is_stopping_ = false;
  std::atomic<bool> is_running_ = false;
};

// A process tries to open all devices.
remote::Result<> Supervisor::prepare() {
  auto pair = control_pair();
  int line[2];
  if (!pair || ::pipe2(line, O_CLOEXEC) != 0)
    return remote::fail(HALYARD_RESOURCE_EXHAUSTED, "no more descriptors: {}", std::strerror(errno));
  const remote::Descriptor line_end(line[0]), line_begin(line[1]);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0)
    return remote::fail(HALYARD_RESOURCE_EXHAUSTED, "no process can be started: {}", std::strerror(errno));
  if (process == 0)
    run_worker(
        {options_, tls_, 1, pair->second.get(), line_end.get(), std::make_shared<Counts>(), parent, true});
  {
    const remote::Descriptor theirs = std::move(pair->second);
  }
  bool is_over = false;
  const std::optional<ControlMessage> told = receive_control(pair->first.get(), true, is_over);
  {
    const remote::Descriptor mine = std::move(pair->first);
  }  // ends the process
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (told && told->kind == Control::ready) return {};
  if (told && told->kind == Control::failed)
    return remote::fail(static_cast<halyard_status_code_t>(told->code), "{}", told->bytes);
  return remote::fail(HALYARD_INTERNAL,
                      "the process that opens the devices has ended by {}, probably in a driver",
                      WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status)) : "itself");
}

size_t Supervisor::number_of(const std::shared_ptr<remote::TlsContext>& tls) {
  if (!tls) return 0;
  const auto known = std::ranges::find(tls_, tls);
  const auto number = static_cast<size_t>(known - tls_.begin()) + 1;
  if (known == tls_.end()) tls_.push_back(tls);
  return number;
}

void Supervisor::listen(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) {
  accept_connections(io_, std::move(socket), [this, number = number_of(tls)](remote::Descriptor client) {
    accepted(std::move(client), number);
  });
}

void Supervisor::take(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) {
  const auto shared = std::make_shared<remote::Descriptor>(std::move(socket));
  asio::post(io_, [this, shared, tls = std::move(tls)] { accepted(std::move(*shared), number_of(tls)); });
}

void Supervisor::run(unsigned threads) {
  threads_ = std::min(threads, kMostThreads);
  // Each connection needs some descriptors here.
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  hangups_.assign(::epoll_create1(EPOLL_CLOEXEC));
  await_hangups();
  asio::post(io_, [this] { hand_out(); });
  const auto work = asio::make_work_guard(io_);
  is_running_.store(true);
  io_.run();
  is_running_.store(false);
}

// ---- Connections

void Supervisor::accepted(remote::Descriptor socket, size_t tls) {
  if (is_stopping_ || waiting_.size() >= kWaiting) return;
  waiting_.push_back({std::move(socket), tls});
  hand_out();
}

void Supervisor::hand_out() {
  if (is_stopping_) return;
  size_t starting = 0, ready = 0;
  for (const WorkerRef& worker : std::list<WorkerRef>(workers_)) {
    if (worker->state == Worker::State::ready && !waiting_.empty()) {
      WaitingConnection connection = std::move(waiting_.front());
      waiting_.pop_front();
      give(worker, std::move(connection));
    }
    starting += worker->state == Worker::State::starting;
    ready += worker->state == Worker::State::ready;
  }
  while (!is_retrying_ && starting < kStarting && starting + ready < waiting_.size() + kSpare) {
    if (!start()) break;
    ++starting;
  }
}

void Supervisor::give(const WorkerRef& worker, WaitingConnection connection) {
  end_oldest_stranger();
  worker->state = Worker::State::serving;
  workers_.splice(workers_.end(), workers_, std::ranges::find(workers_, worker));
  worker->has_tls = connection.tls != 0;
  worker->peer = remote::peer_text(connection.socket.get());
  worker->connection = remote::Descriptor(::fcntl(connection.socket.get(), F_DUPFD_CLOEXEC, 0));
  // Not the bytes, only the end of the connection, which a process that hangs would not see.
  epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data = {.fd = worker->process}};
  ::epoll_ctl(hangups_.native_handle(), EPOLL_CTL_ADD, worker->connection.get(), &event);
  ControlMessage order;
  order.kind = Control::serve;
  order.first = connection.tls;
  order.descriptors.push_back(std::move(connection.socket));
  answer(worker, order);
}

// A client that does not say who it is keeps a place only as long as nobody else needs it.
void Supervisor::end_oldest_stranger() {
  const auto is_stranger = [](const WorkerRef& worker) {
    return worker->state == Worker::State::serving && !worker->client && worker->why_killed.empty();
  };
  if (static_cast<size_t>(std::ranges::count_if(workers_, is_stranger)) < options_.limits.strangers) return;
  kill(*std::ranges::find_if(workers_, is_stranger), kWhyStrangersEnd);
}

void Supervisor::await_hangups() {
  hangups_.async_wait(StreamDescriptor::wait_read, [this](boost::system::error_code error) {
    if (error) return;
    epoll_event events[64];
    const int count = ::epoll_wait(hangups_.native_handle(), events, 64, 0);
    for (int i = 0; i < count; ++i) {
      const auto found = std::ranges::find(workers_, static_cast<pid_t>(events[i].data.fd), &Worker::process);
      if (found == workers_.end()) continue;
      const WorkerRef& worker = *found;
      worker->patience.expires_after(kToEnd);
      worker->patience.async_wait([this, worker](boost::system::error_code over) {
        if (!over) kill(worker, "its driver did not let it end after the client had gone");
      });
    }
    await_hangups();
  });
}

// ---- Processes

bool Supervisor::start() {
  const auto worker = std::make_shared<Worker>(io_);
  auto pair = control_pair();
  remote::Descriptor exit_file;
  int line[2] = {-1, -1};
  worker->counts = shared_counts();
  if (!pair || !worker->counts || ::pipe2(line, O_CLOEXEC) != 0) {
    options_.log(fmt::format("no process can be started: {}", std::strerror(errno)));
  } else {
    const remote::Descriptor line_end(line[0]);
    worker->line = remote::Descriptor(line[1]);
    const pid_t parent = ::getpid();
    worker->process = ::fork();
    if (worker->process == 0)
      run_worker(
          {options_, tls_, threads_, pair->second.get(), line_end.get(), worker->counts, parent, false});
    if (worker->process > 0)
      exit_file = remote::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, worker->process, 0)));
    if (exit_file.get() < 0) options_.log(fmt::format("no process can be started: {}", std::strerror(errno)));
    if (exit_file.get() < 0 && worker->process > 0) {
      ::kill(worker->process, SIGKILL);
      ::waitpid(worker->process, nullptr, 0);
    }
  }
  if (exit_file.get() < 0) {
    retry_later();
    return false;
  }
  // Processes that are forked later cannot see or change the counts of this one.
  ::madvise(worker->counts.get(), sizeof(Counts), MADV_DONTFORK);
  worker->exited.assign(exit_file.release());
  worker->control.assign(pair->first.release());
  workers_.push_back(worker);
  await_exit(worker);
  await_messages(worker);
  return true;
}

void Supervisor::retry_later() {
  is_retrying_ = true;
  retry_.expires_after(kRetry);
  retry_.async_wait([this](boost::system::error_code error) {
    is_retrying_ = false;
    if (!error) hand_out();
  });
}

void Supervisor::await_exit(const WorkerRef& worker) {
  worker->exited.async_wait(StreamDescriptor::wait_read, [this, worker](boost::system::error_code error) {
    if (!error) ended(worker);
  });
}

void Supervisor::await_messages(const WorkerRef& worker) {
  worker->control.async_wait(StreamDescriptor::wait_read, [this, worker](boost::system::error_code error) {
    if (error) return;
    for (size_t i = 0; i < kMessagesAtOnce; ++i) {
      bool is_over = false;
      std::optional<ControlMessage> message =
          receive_control(worker->control.native_handle(), false, is_over);
      if (is_over) return;  // it is about to end
      if (!message) break;
      if (handle(worker, *std::move(message))) continue;
      return kill(worker, "it broke the rules between processes of this server");
    }
    await_messages(worker);
  });
}

bool Supervisor::answer(const WorkerRef& worker, const ControlMessage& message) {
  return send_control(worker->control.native_handle(), message, false);
}

bool Supervisor::handle(const WorkerRef& worker, ControlMessage message) {
  const auto refused = [&](const Status& status) {
    const remote::Failure failure = to_wire(status);
    return answer(worker, {.kind = Control::refused,
                           .code = failure.code,
                           .bytes = failure.message.substr(0, kMaxControlBytes)});
  };
  if (message.kind == Control::ready) {
    if (worker->state != Worker::State::starting) return false;
    worker->state = Worker::State::ready;
    hand_out();
    return true;
  }
  if (message.kind == Control::failed) {
    options_.log(fmt::format("a process for connections cannot start: {}", message.bytes));
    for (; !waiting_.empty(); waiting_.pop_front())
      if (waiting_.front().tls == 0)
        refuse(waiting_.front().socket.get(), Code::UNAVAILABLE, "the server cannot start: " + message.bytes);
    return true;
  }
  if (worker->state != Worker::State::serving) return false;
  if (message.kind == Control::begin) return !worker->client && begin(worker, message.bytes);
  if (!worker->client) return false;
  BlobStore& store = *worker->client->store;
  switch (message.kind) {
    case Control::reserve: {
      if (worker->use_count >= kMostUses) return false;
      const Result<uint64_t> offset = store.reserve(message.first);
      if (!offset) return refused(offset.error());
      ++worker->uses[*offset];
      ++worker->use_count;
      const BlobPlaces::Place place = {*offset, message.first};
      return answer(worker, {.kind = Control::placed,
                             .bytes = std::string(reinterpret_cast<const char*>(&place), sizeof place)});
    }
    case Control::publish: {
      remote::Sha256 digest;
      if (message.bytes.size() != digest.size() || !worker->uses.contains(message.first)) return false;
      std::memcpy(digest.data(), message.bytes.data(), digest.size());
      store.publish(message.first, digest);
      return true;
    }
    case Control::find:
      return find(worker, message.bytes);
    case Control::release: {
      const auto used = worker->uses.find(message.first);
      if (used == worker->uses.end()) return false;
      store.release(message.first);
      --worker->use_count;
      if (--used->second == 0) worker->uses.erase(used);
      return true;
    }
    default:
      return false;
  }
}

bool Supervisor::begin(const WorkerRef& worker, const std::string& names) {
  const size_t middle = names.find('\0');
  if (middle == std::string::npos) return false;
  Result<std::shared_ptr<Client>> client = clients_.begin(names.substr(0, middle), names.substr(middle + 1));
  ControlMessage told;
  if (client) {
    worker->client = *std::move(client);
    worker->slot = worker->client->account->take_slot();
    told.kind = Control::granted;
    told.first = worker->slot;
    told.second = worker->client->store->capacity();
    for (const int file : {worker->client->account->file(), worker->client->store->file()})
      told.descriptors.emplace_back(::fcntl(file, F_DUPFD_CLOEXEC, 0));
  } else {
    const remote::Failure failure = to_wire(client.error());
    told.kind = Control::refused;
    told.code = failure.code;
    told.bytes = failure.message;
  }
  return answer(worker, told);
}

bool Supervisor::find(const WorkerRef& worker, const std::string& digests) {
  constexpr size_t kSize = sizeof(remote::Sha256);
  if (digests.size() % kSize != 0 || worker->use_count >= kMostUses) return false;
  std::vector<remote::Sha256> wanted(digests.size() / kSize);
  std::memcpy(wanted.data(), digests.data(), digests.size());
  const std::vector<BlobPlaces::Place> places = worker->client->store->find(wanted);
  for (const BlobPlaces::Place& place : places) {
    if (place.size == 0) continue;
    ++worker->uses[place.offset];
    ++worker->use_count;
  }
  return answer(worker, {.kind = Control::placed,
                         .bytes = std::string(reinterpret_cast<const char*>(places.data()),
                                              places.size() * sizeof(BlobPlaces::Place))});
}

// ---- The end of processes

void Supervisor::kill(const WorkerRef& worker, std::string why) {
  worker->why_killed = std::move(why);
  ::kill(worker->process, SIGKILL);
}

void Supervisor::refuse(int socket, Code code, const std::string& why) {
  remote::Message message;
  const auto status = remote::add_status(message, {static_cast<halyard_status_code_t>(code), why});
  const remote::Bytes bytes = message.to_client(remote::wire::CreateRefused(message.builder(), status));
  const uint32_t header[2] = {static_cast<uint32_t>(bytes.size()), 0};
  std::string frame(reinterpret_cast<const char*>(header), sizeof header);
  frame.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  (void)::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// "SIGSEGV (Segmentation fault)"
std::string signal_text(int number) {
  const char* const name = ::sigabbrev_np(number);
  const char* const description = ::sigdescr_np(number);
  return fmt::format("SIG{} ({})", name ? name : std::to_string(number),
                     description ? description : "unknown");
}

void Supervisor::report(const Worker& worker, const siginfo_t& end) {
  const bool is_signal = end.si_code != CLD_EXITED;
  if (!is_signal && end.si_status == 0) return;
  const bool is_serving = worker.state == Worker::State::serving;
  if (is_stopping_ && !is_serving) return;
  ended_.crashes += is_serving;
  std::string why;
  if (!worker.why_killed.empty()) {
    why = "was ended by the server, because " + worker.why_killed;
  } else if (is_signal && end.si_status == SIGALRM) {
    why = is_serving ? "was ended by the server, because its driver did not let it end"
                     : "was ended by the server, because its drivers did not start in time";
  } else if (is_signal) {
    why = fmt::format("was ended by {}", signal_text(end.si_status));
    if (end.si_status == SIGKILL) why += "; is the machine short of memory?";
  } else {
    why = fmt::format("has ended itself with exit code {}", end.si_status);
  }
  const std::string name = worker.client ? worker.client->name : "nobody yet";
  options_.log(is_serving
                   ? fmt::format("client '{}' ({}): process {} of its connection {}; other connections go on",
                                 name, worker.peer, worker.process, why)
                   : fmt::format("process {}, which waited for a connection, {}", worker.process, why));
  // The TLS keys have gone with the process. Nothing can follow a part of a frame either.
  if (is_serving && !worker.has_tls && worker.counts->is_within_frame.load() == 0)
    refuse(worker.connection.get(), Code::UNAVAILABLE, "the server's process of this connection " + why);
}

void Supervisor::ended(const WorkerRef& worker) {
  siginfo_t end = {};
  while (::waitid(P_PID, static_cast<id_t>(worker->process), &end, WEXITED) < 0 && errno == EINTR) {
  }
  report(*worker, end);
  if (worker->client) {
    for (const auto& [offset, count] : worker->uses)
      for (size_t i = 0; i < count; ++i) worker->client->store->release(offset);
    worker->client->account->clear_slot(worker->slot);
    clients_.end(*worker->client);
  }
  ended_.add_totals(*worker->counts);
  const bool has_failed = worker->state == Worker::State::starting;
  worker->patience.cancel();
  worker->control.close();
  worker->exited.close();
  workers_.remove(worker);
  if (is_stopping_) {
    if (workers_.empty()) io_.stop();
    return;
  }
  // Not at once, because the next one may fail, too.
  if (has_failed && !is_retrying_) retry_later();
  hand_out();
}

void Supervisor::stop_all() {
  if (std::exchange(is_stopping_, true)) return;
  waiting_.clear();
  for (const WorkerRef& worker : workers_) {
    {
      const remote::Descriptor line = std::move(worker->line);
    }
    if (worker->state != Worker::State::serving) kill(worker, "the server is ending");
  }
  if (workers_.empty()) io_.stop();
  retry_.expires_after(kToStop);
  retry_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    for (const WorkerRef& worker : workers_) kill(worker, "the server is ending");
  });
}

// ---- Numbers

std::string Supervisor::text_of_numbers() const {
  Numbers numbers = ended_;
  for (const WorkerRef& worker : workers_) {
    numbers.add_totals(*worker->counts);
    numbers.add_current(*worker->counts);
  }
  numbers.processes = workers_.size();
  numbers.connections = clients_.connections();
  numbers.memory_bytes = clients_.memory_bytes();
  numbers.cached_bytes = clients_.cached_bytes();
  return numbers.page();
}

// Of another thread than that of run().
std::string Supervisor::metrics() const {
  if (!is_running_.load()) return text_of_numbers();
  std::promise<std::string> text;
  asio::post(const_cast<asio::io_context&>(io_), [&] { text.set_value(text_of_numbers()); });
  return text.get_future().get();
}

}  // namespace

remote::Result<std::unique_ptr<Server>> create_supervisor(ServerOptions options) {
  auto supervisor = std::make_unique<Supervisor>(std::move(options));
  if (remote::Result<> prepared = supervisor->prepare(); !prepared) return std::unexpected(prepared.error());
  return supervisor;
}

}  // namespace halyard::device_server
