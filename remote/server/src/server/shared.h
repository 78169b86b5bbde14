// Shared: what all sessions of a server use.
#pragma once

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

// The devices that are offered. Opened when a client first asks, and shared by all clients; a device that was
// lost is opened again for the next one. Thread-safe.
class Devices {
 public:
  Devices(Ref<hal::DriverRegistry> registry, std::vector<std::string> uris);
  const std::vector<std::string>& uris() const { return uris_; }
  // `name`: a URI as offered, its driver, or empty for the first. NOT_FOUND lists the devices.
  Result<Ref<hal::Device>> open(std::string_view name);

 private:
  const Ref<hal::DriverRegistry> registry_;
  const std::vector<std::string> uris_;
  std::mutex mutex_;  // guards the member below
  std::vector<Ref<hal::Device>> opened_;
};

struct Shared {
  Shared(const Limits& given, std::vector<std::string> uris, Ref<hal::DriverRegistry> registry, bool native,
         std::function<void(std::string_view)> logger)
      : limits(given),
        devices(std::move(registry), std::move(uris)),
        allows_native(native),
        log(std::move(logger)) {}

  const Limits limits;
  boost::asio::io_context io;
  const Ref<Loop> loop = Loop::on(io);
  Clients clients{limits};
  Devices devices;
  const bool allows_native;
  const std::function<void(std::string_view)> log;  // one line; any thread
  Counts counts;
  std::atomic<uint64_t> next_owner{1};
};

}  // namespace halyard::device_server
