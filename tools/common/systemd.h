// Communication with systemd: inherited sockets and notifications. Both are plain protocols: environment
// variables and a datagram (sd_listen_fds(3), sd_notify(3)). Without systemd these functions do nothing.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

// The sockets passed to this process; none without $LISTEN_FDS. Sets close-on-exec and removes the variables.
// INVALID_ARGUMENT: a descriptor is not a listening stream socket.
Result<std::vector<int>> inherited_sockets();

class Notifier {
 public:
  Notifier();  // uses and removes $NOTIFY_SOCKET
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier();

  // "READY=1\nSTATUS=...". Any thread; failures are ignored.
  void send(std::string_view state) const;
  // Sends "RELOADING=1" with the required time of CLOCK_MONOTONIC.
  void send_reloading() const;

  // How often the service must notify the watchdog, if it must: half of $WATCHDOG_USEC.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  int socket_ = -1;
  std::string address_;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace halyard::tools
