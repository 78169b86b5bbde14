// Addresses of servers, and the sockets for them: TCP, TLS over TCP, and Unix sockets.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "remote/failure.h"

namespace halyard::remote {

inline constexpr uint16_t kDefaultPort = 9414;

// A descriptor that is closed with this object; -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  uint16_t port = kDefaultPort;
  std::string text() const;  // "[::1]:9414"
};
// "build-box", "build-box:9414", "[::1]:9414". INVALID_ARGUMENT.
Result<HostPort> parse_host_port(std::string_view text);

enum class Transport : uint8_t { tcp, tls, unix_socket, inherited };

// An address to listen on.
struct ListenAddress {
  Transport transport = Transport::tcp;
  HostPort tcp;
  std::string path;  // of a Unix socket
};
// "tcp://HOST:PORT", "tls://HOST:PORT", "unix:///PATH", "fd://" (the sockets that the process was started with).
// INVALID_ARGUMENT.
Result<ListenAddress> parse_listen_address(std::string_view text);

// Whether both ends of the connection, or the listening socket, are on this machine.
bool is_loopback(int socket);

// Connected sockets, which do not block. NOT_FOUND: no such host. UNAVAILABLE: nobody listens there.
// DEADLINE_EXCEEDED: no answer.
Result<Descriptor> connect_tcp(const HostPort& to, std::chrono::milliseconds timeout);
Result<Descriptor> connect_unix(const std::string& path);

// Listening sockets, which do not block. `port` 0: any free port.
Result<Descriptor> listen_tcp(const HostPort& at);
// Replaces a socket file without a listener. Its owner and group may connect.
Result<Descriptor> listen_unix(const std::string& path);

// The port of a listening TCP socket.
uint16_t port_of(int socket);

// The user and the group of the process at the other end of a Unix socket.
struct PeerUser {
  uid_t user;
  gid_t group;
  pid_t process;
};
Result<PeerUser> peer_user(int socket);
// "10.0.0.7:51234", or "unix" for a Unix socket.
std::string peer_text(int socket);

}  // namespace halyard::remote
