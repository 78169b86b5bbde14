// Descriptors from 3 on, and datagrams to an AF_UNIX address.
#include "common/systemd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace halyard::tools {

namespace {

constexpr int kFirstDescriptor = 3;
constexpr int kMaxSockets = 64;

std::string take_variable(const char* name) {
  const char* const value = std::getenv(name);
  std::string taken = value ? value : "";
  ::unsetenv(name);
  return taken;
}

std::optional<long> as_number(std::string_view text) {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_listening(int descriptor) {
  int type = 0, listens = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return false;
  size = sizeof listens;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

}  // namespace

Result<std::vector<int>> inherited_sockets() {
  const std::string process = take_variable("LISTEN_PID"), count = take_variable("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  std::vector<int> sockets;
  if (process.empty() || count.empty() || as_number(process) != static_cast<long>(::getpid())) return sockets;
  const auto number = as_number(count);
  if (!number || *number < 0 || *number > kMaxSockets)
    return fail(HALYARD_INVALID_ARGUMENT, "$LISTEN_FDS is '{}'; expected a number of sockets, at most {}",
                count, kMaxSockets);
  for (int descriptor = kFirstDescriptor; descriptor < kFirstDescriptor + *number; ++descriptor) {
    if (!is_listening(descriptor))
      return fail(HALYARD_INVALID_ARGUMENT,
                  "descriptor {} of $LISTEN_FDS is not a listening stream socket; expected ListenStream= in "
                  "the socket unit",
                  descriptor);
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    sockets.push_back(descriptor);
  }
  return sockets;
}

Notifier::Notifier() : address_(take_variable("NOTIFY_SOCKET")) {
  const std::string time = take_variable("WATCHDOG_USEC"), process = take_variable("WATCHDOG_PID");
  const bool is_ours = process.empty() || as_number(process) == static_cast<long>(::getpid());
  if (const auto limit = as_number(time); limit && *limit > 0 && is_ours)
    watchdog_ = std::chrono::microseconds(*limit) / 2;
  const bool is_address = !address_.empty() && (address_.front() == '/' || address_.front() == '@');
  if (!is_address || address_.size() >= sizeof(sockaddr_un::sun_path)) return;
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

Notifier::~Notifier() {
  if (socket_ >= 0) ::close(socket_);
}

void Notifier::send(std::string_view state) const {
  if (socket_ < 0) return;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, address_.data(), address_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;  // an abstract address
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  static_cast<void>(::sendto(socket_, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                             reinterpret_cast<const sockaddr*>(&address), size));
}

void Notifier::send_reloading() const {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1000000LL + now.tv_nsec / 1000));
}

}  // namespace halyard::tools
