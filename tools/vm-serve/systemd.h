// What systemd tells a service, and is told: inherited sockets and notifications. Both are plain protocols:
// variables of the environment and a datagram (sd_listen_fds(3), sd_notify(3)). Without systemd nothing
// happens.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"

namespace halyard::tools::serve {

// The sockets that were passed to this process; none without $LISTEN_FDS. They are closed on exec from then
// on, and the variables are removed. INVALID_ARGUMENT: a descriptor that is not a listening stream socket.
Result<std::vector<int>> inherited_sockets();

class Notifier {
 public:
  Notifier();  // for $NOTIFY_SOCKET, which is removed
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier();

  // "READY=1\nSTATUS=...". Any thread; failures are ignored.
  void send(std::string_view state) const;
  // "RELOADING=1" needs the time of CLOCK_MONOTONIC beside it.
  void send_reloading() const;

  // How often the service must say that it lives, if it must: half of $WATCHDOG_USEC.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  int socket_ = -1;
  std::string address_;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace halyard::tools::serve
