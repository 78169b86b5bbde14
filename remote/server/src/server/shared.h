// Shared: what all sessions of a server use.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hal/registry/driver_registry.h"
#include "remote/busy_polling.h"
#include "server/client.h"
#include "server/files.h"
#include "server/limits.h"
#include "server/numbers.h"

namespace halyard::device_server {

// Makes a registry of the drivers that the server uses; the tracer may be null.
using Registries = std::function<Ref<hal::DriverRegistry>(Ref<Tracer> tracer)>;

// The devices that are offered. Each client has logical devices of its own, so work of one client that hangs,
// or loses its device, does not reach another. The connections of a client share them. A few devices that
// nobody uses stay open for the next connection of their clients. Thread-safe.
class Devices {
 public:
  Devices(Registries make_registry, std::vector<std::string> uris);
  // `name`: a URI as offered, its driver, or empty for the first. NOT_FOUND lists the devices. A device that
  // was lost is opened again. `client` tells clients apart. Each success needs one close().
  Result<Ref<hal::Device>> open(std::string_view name, const std::string& client);
  // A device for one connection alone, whose work the tracer records. `counts`: with the operations and bytes
  // of kernels, if the device can count them. Needs one close(), too.
  Result<Ref<hal::Device>> open_traced(std::string_view name, Ref<Tracer> tracer, bool counts);
  void close(const hal::Device& device);
  // Opens each device once, so that its driver is loaded. The failure of the first that cannot be opened.
  Result<> try_all();
  size_t open_devices() const;

 private:
  struct Entry {
    size_t offered;  // its number in uris_
    std::string client;
    Ref<hal::Device> device;
    size_t users;
  };
  Result<size_t> find(std::string_view name) const;
  Ref<hal::Device> use(size_t offered, const std::string& client);

  const Registries make_registry_;
  const Ref<hal::DriverRegistry> registry_;
  const std::vector<std::string> uris_;
  mutable std::mutex mutex_;  // guards the member below
  std::list<Entry> opened_;   // the most recently used one first
};

// Whether the URI is that of a device of the processor.
bool is_local(std::string_view uri);
// The URI with the option, unless it has one of this name.
std::string with_option(std::string uri, std::string_view key, std::string_view value);

class Session;

// The sessions of clients that have not said who they are, the oldest one first. Thread-safe.
class Strangers {
 public:
  explicit Strangers(size_t most) : most_(most) {}
  // The oldest one ends for a new one.
  void add(const std::shared_ptr<Session>& session);

 private:
  const size_t most_;
  std::mutex mutex_;  // guards the member below
  std::list<std::weak_ptr<Session>> sessions_;
};

// The sessions that exist. Thread-safe.
class Sessions {
 public:
  void add(std::weak_ptr<Session> session);
  // Those that still exist.
  std::vector<std::shared_ptr<Session>> all();

 private:
  std::mutex mutex_;  // guards the members below
  std::vector<std::weak_ptr<Session>> sessions_;
  size_t next_cleaning_ = 64;
};

// A thread that receives messages, and handles short ones.
struct ReceivingThread {
  explicit ReceivingThread(std::chrono::microseconds busy_poll) : polling(busy_poll) {}
  // Until the io_context is stopped. A handler that throws ends nothing but itself; `log` gets a line.
  void run(const std::function<void(std::string_view)>& log);

  boost::asio::io_context io{1};
  remote::BusyPolling polling;  // of this thread
};

// What a process does for a server: all, or one connection.
struct Role {
  std::shared_ptr<Clients> clients;
  std::shared_ptr<Counts> counts = std::make_shared<Counts>();
  size_t receivers = 2;                              // threads that receive
  std::atomic<uint32_t>* is_within_frame = nullptr;  // of the only connection
  std::function<void()> lost = [] {};                // after the end of a connection; any thread
};

struct Shared {
  Shared(const Limits& given, std::vector<std::string> uris, Registries make_registry, bool native,
         Files readable, std::function<void(std::string_view)> logger, Role role)
      : limits(given),
        files(std::move(readable)),
        clients(std::move(role.clients)),
        allows_native(native),
        log(std::move(logger)),
        counts_owner(std::move(role.counts)),
        counts(*counts_owner),
        is_within_frame(role.is_within_frame),
        lost(std::move(role.lost)),
        strangers(limits.strangers),
        devices(std::move(make_registry), std::move(uris)) {
    for (size_t i = 0; i < role.receivers; ++i) receivers.emplace_back(limits.busy_poll);
  }

  // The thread of a new session.
  ReceivingThread& receiver() {
    return receivers[next_receiver.fetch_add(1, std::memory_order_relaxed) % receivers.size()];
  }

  const Limits limits;
  const Files files;
  const std::shared_ptr<Clients> clients;
  const bool allows_native;
  const std::function<void(std::string_view)> log;  // one line; any thread
  const std::shared_ptr<Counts> counts_owner;
  Counts& counts;
  std::atomic<uint32_t>* const is_within_frame;
  const std::function<void()> lost;
  Sessions sessions;
  Strangers strangers;
  std::atomic<uint64_t> next_owner{1};
  // Sessions end at the latest with these, and use what is above.
  boost::asio::io_context io;  // of a pool: what may take long
  std::deque<ReceivingThread> receivers;
  std::atomic<size_t> next_receiver{0};
  const Ref<Loop> loop = Loop::on(io);
  Devices devices;
};

}  // namespace halyard::device_server
