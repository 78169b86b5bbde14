// A driver may do anything in this process: crash it, block each of its threads, or use all its memory. So a
// timer of the kernel ends it if it does not end after its connection, and the process that listens does so
// if even that timer was not set.
#include "server/worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "server/control.h"
#include "server/failures.h"
#include "server/serving.h"

namespace halyard::device_server {

namespace {

constexpr unsigned kSecondsToStart = 60;
constexpr unsigned kSecondsToEnd = 8;  // with the time in which sessions end
constexpr auto kStuck = std::chrono::seconds(5);
constexpr size_t kMoreThreads = 2;
constexpr size_t kDigestsAtOnce = kMaxControlBytes / sizeof(remote::Sha256);

// Calls of the process that listens.
class Link {
 public:
  explicit Link(int socket) : socket_(socket) {}
  // Does not return if the other process has gone.
  ControlMessage call(const ControlMessage& asked) {
    const std::lock_guard lock(mutex_);
    tell(asked);
    bool is_over = false;
    std::optional<ControlMessage> answer = receive_control(socket_, true, is_over);
    if (!answer) ::_exit(0);
    return *std::move(answer);
  }
  void tell(const ControlMessage& message) {
    if (!send_control(socket_, message, true)) ::_exit(0);
  }

 private:
  const int socket_;
  std::mutex mutex_;  // one call at a time
};

Status refusal_of(const ControlMessage& answer) {
  return Status(static_cast<Code>(answer.code), answer.bytes);
}

// The store of the client, in the process that listens.
class RemotePlaces final : public BlobPlaces {
 public:
  explicit RemotePlaces(Link& link) : link_(link) {}

  Result<uint64_t> reserve(uint64_t size) override {
    const ControlMessage answer = link_.call({.kind = Control::reserve, .first = size});
    if (answer.kind == Control::refused) return std::unexpected(refusal_of(answer));
    return place_of(answer, 0).offset;
  }
  void publish(uint64_t offset, const remote::Sha256& digest) override {
    link_.tell({.kind = Control::publish, .first = offset, .bytes = bytes_of({&digest, 1})});
  }
  std::vector<Place> find(std::span<const remote::Sha256> digests) override {
    std::vector<Place> places;
    while (places.size() < digests.size()) {
      const auto part =
          digests.subspan(places.size(), std::min(kDigestsAtOnce, digests.size() - places.size()));
      const ControlMessage answer = link_.call({.kind = Control::find, .bytes = bytes_of(part)});
      for (size_t i = 0; i < part.size(); ++i) places.push_back(place_of(answer, i));
    }
    return places;
  }
  void release(uint64_t offset) override { link_.tell({.kind = Control::release, .first = offset}); }

 private:
  static std::string bytes_of(std::span<const remote::Sha256> digests) {
    return {reinterpret_cast<const char*>(digests.data()), digests.size_bytes()};
  }
  static Place place_of(const ControlMessage& answer, size_t number) {
    Place place;
    if (answer.bytes.size() >= (number + 1) * sizeof place)
      std::memcpy(&place, answer.bytes.data() + number * sizeof place, sizeof place);
    return place;
  }

  Link& link_;
};

// The one client of this process.
class OneClient final : public Clients {
 public:
  OneClient(Link& link, const Limits& limits) : link_(link), limits_(limits) {}

  Result<std::shared_ptr<Client>> begin(const std::string& key, const std::string& name) override {
    ControlMessage answer = link_.call({.kind = Control::begin, .bytes = key + '\0' + name});
    if (answer.kind == Control::refused) return std::unexpected(refusal_of(answer));
    if (answer.kind != Control::granted || answer.descriptors.size() != 2)
      return fail(Code::INTERNAL, "the process that listens gives no account");
    auto client = std::make_shared<Client>();
    client->name = name;
    client->account = HALYARD_TRY(
        Account::open(std::move(answer.descriptors[0]), limits_.connections_of_client + 1, limits_.memory));
    client->memory = client->account->budget(answer.first);
    client->blobs = HALYARD_TRY(
        Blobs::create(std::make_shared<RemotePlaces>(link_), answer.descriptors[1].get(), answer.second));
    kept_ = client;  // charges may live longer than the session
    return client;
  }
  void end(Client&) override {}  // when the process ends

 private:
  Link& link_;
  const Limits& limits_;
  std::shared_ptr<Client> kept_;
};

void close_others(std::vector<int> kept) {
  kept.insert(kept.end(), {0, 1, 2});
  std::ranges::sort(kept);
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto first = static_cast<unsigned>(kept[i]) + 1;
    const unsigned last = i + 1 < kept.size() ? static_cast<unsigned>(kept[i + 1]) - 1 : ~0u;
    if (first > last) continue;
    if (::close_range(first, last, 0) == 0) continue;
    rlimit limit = {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned each = first; each <= last && each < limit.rlim_cur; ++each)
      ::close(static_cast<int>(each));
  }
}

// If the machine is short of memory, its kernel ends one of these processes, not the one that listens.
void offer_to_the_oom_killer() {
  if (std::FILE* const file = std::fopen("/proc/self/oom_score_adj", "we")) {
    std::fputs("500", file);
    std::fclose(file);
  }
}

// What a driver allocates besides the memory that is charged has a limit, too.
void limit_memory(uint64_t charged) {
  constexpr uint64_t kMore = uint64_t{1} << 30, kOfThread = uint64_t{16} << 20;
  uint64_t pages[6] = {};
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (!file) return;
  for (uint64_t& each : pages) {
    unsigned long number = 0;
    if (std::fscanf(file, "%lu", &number) == 1) each = number;
  }
  std::fclose(file);
  const uint64_t now = pages[5] * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t more = kMore + kOfThread * std::thread::hardware_concurrency();
  rlimit limit = {};
  if (charged > (uint64_t{1} << 52) || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, now + charged + more);
  ::setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace

void run_worker(const WorkerStart& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != start.parent) ::_exit(0);
  ::prctl(PR_SET_NAME, "vm-device:work");
  close_others({start.control, start.line});
  // The process that listens tells this one to end.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  ::signal(SIGALRM, SIG_DFL);
  sigset_t alarm_alone;
  ::sigemptyset(&alarm_alone);
  ::sigaddset(&alarm_alone, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm_alone, nullptr);
  ::alarm(kSecondsToStart);
  offer_to_the_oom_killer();

  static Link link(start.control);
  Role role;
  role.clients = std::make_shared<OneClient>(link, start.options.limits);
  role.counts = start.counts;
  role.receivers = 1;
  role.is_within_frame = &start.counts->is_within_frame;
  ServingProcess* serving = nullptr;
  role.lost = [&serving] {
    ::alarm(kSecondsToEnd);
    serving->stop();
  };
  remote::Result<std::unique_ptr<ServingProcess>> made =
      ServingProcess::create(start.options, std::move(role), start.tries_devices);
  if (!made) {
    link.tell({.kind = Control::failed, .code = made.error().code, .bytes = made.error().message});
    ::_exit(1);
  }
  serving = made->get();
  limit_memory(start.options.limits.memory);
  ::alarm(0);
  ControlMessage order = link.call({.kind = Control::ready});
  if (order.kind != Control::serve || order.descriptors.size() != 1 || order.first > start.tls.size())
    ::_exit(1);
  serving->stop_with(remote::Descriptor(start.line));
  serving->take(std::move(order.descriptors[0]), order.first == 0 ? nullptr : start.tls[order.first - 1]);
  bool is_ending = false;
  serving->run(start.threads, kMoreThreads, [&] {
    if (is_ending || !serving->end_stuck(kStuck)) return;
    is_ending = true;
    ::alarm(kSecondsToEnd);
  });
  made->reset();
  ::_exit(0);
}

}  // namespace halyard::device_server
