// Shared: what all sessions of a server use.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "hal/registry/driver_registry.h"
#include "server/client.h"
#include "server/limits.h"

namespace halyard::device_server {

struct Counts {
  std::atomic<uint64_t> accepted{0};  // connections
  std::atomic<uint64_t> refused{0};   // connections
  std::atomic<uint64_t> broken{0};    // connections of clients that broke the protocol
  std::atomic<uint64_t> submissions{0};
  std::atomic<uint64_t> failures{0};  // of submissions
  std::atomic<uint64_t> received_bytes{0};
  std::atomic<uint64_t> sent_bytes{0};
};

// Makes a registry of the drivers that the server uses; the tracer may be null.
using Registries = std::function<Ref<hal::DriverRegistry>(Ref<Tracer> tracer)>;

// The devices that are offered. Opened when a client first asks, and shared by all clients; a device that was
// lost is opened again for the next one. Thread-safe.
class Devices {
 public:
  Devices(Registries make_registry, std::vector<std::string> uris);
  const std::vector<std::string>& uris() const { return uris_; }
  // `name`: a URI as offered, its driver, or empty for the first. NOT_FOUND lists the devices.
  Result<Ref<hal::Device>> open(std::string_view name);
  // A device for one client alone, whose work the tracer records.
  Result<Ref<hal::Device>> open_traced(std::string_view name, Ref<Tracer> tracer);

 private:
  Result<size_t> find(std::string_view name) const;

  const Registries make_registry_;
  const Ref<hal::DriverRegistry> registry_;
  const std::vector<std::string> uris_;
  std::mutex mutex_;  // guards the member below
  std::vector<Ref<hal::Device>> opened_;
};

struct Shared {
  Shared(const Limits& given, std::vector<std::string> uris, Registries make_registry, bool native,
         std::function<void(std::string_view)> logger)
      : limits(given),
        allows_native(native),
        log(std::move(logger)),
        devices(std::move(make_registry), std::move(uris)) {}

  // The threads that receive; each session belongs to one of them.
  boost::asio::io_context& receiver() {
    return receivers[next_receiver.fetch_add(1, std::memory_order_relaxed) % receivers.size()];
  }

  const Limits limits;
  Clients clients{limits};
  const bool allows_native;
  const std::function<void(std::string_view)> log;  // one line; any thread
  Counts counts;
  std::atomic<uint64_t> next_owner{1};
  // Sessions end at the latest with these, and use what is above.
  boost::asio::io_context io;  // of a pool: what may take long
  std::array<boost::asio::io_context, 2> receivers{boost::asio::io_context(1), boost::asio::io_context(1)};
  std::atomic<size_t> next_receiver{0};
  const Ref<Loop> loop = Loop::on(io);
  Devices devices;
};

}  // namespace halyard::device_server
