// POSIX sockets. Asio takes them over when they are connected.
#include "remote/address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace halyard::remote {

namespace {

std::string error_text(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const HostPort& place, int flags) {
  addrinfo wishes = {};
  wishes.ai_socktype = SOCK_STREAM;
  wishes.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(place.port);
  if (const int error = ::getaddrinfo(place.host.c_str(), port.c_str(), &wishes, &list))
    return fail(error == EAI_NONAME || error == EAI_NODATA ? HALYARD_NOT_FOUND : HALYARD_UNAVAILABLE,
                "host '{}' has no address: {}; check its name", place.host, ::gai_strerror(error));
  return Addresses(list);
}

void send_at_once(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_UNIX) return true;
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  if (address.ss_family != AF_INET6) return false;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return six.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&six);
}

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(HALYARD_INVALID_ARGUMENT, "expected the path of a Unix socket with 1 to {} bytes, found '{}'",
                sizeof address.sun_path - 1, path);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

constexpr int kSocketKind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

// 0, or the reason why the socket did not connect in time.
int finish_connecting(int socket, std::chrono::milliseconds timeout) {
  pollfd wait = {socket, POLLOUT, 0};
  const int ready = ::poll(&wait, 1, static_cast<int>(timeout.count()));
  if (ready == 0) return ETIMEDOUT;
  if (ready < 0) return errno;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string HostPort::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

Result<HostPort> parse_host_port(std::string_view text) {
  HostPort place;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos)
      return fail(HALYARD_INVALID_ARGUMENT, "expected ']' after the IPv6 address, found '{}'", text);
    place.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    place.host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (place.host.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "expected HOST or HOST:PORT, found '{}'", text);
  if (port.empty()) return place;
  unsigned number = 0;
  const char* const end = port.data() + port.size();
  const auto [last, error] = std::from_chars(port.data() + 1, end, number);
  if (port[0] != ':' || error != std::errc() || last != end || number > 65535)
    return fail(HALYARD_INVALID_ARGUMENT, "expected a port from 0 to 65535 after the host, found '{}'", text);
  place.port = static_cast<uint16_t>(number);
  return place;
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  ListenAddress address;
  constexpr std::string_view kUnix = "unix://", kTcp = "tcp://", kTls = "tls://";
  if (text.starts_with(kUnix)) {
    address.transport = Transport::unix_socket;
    address.path = text.substr(kUnix.size());
    REMOTE_TRY(unix_address(address.path));
    return address;
  }
  if (text == "fd://") {
    address.transport = Transport::inherited;
    return address;
  }
  const bool is_tls = text.starts_with(kTls);
  if (!is_tls && !text.starts_with(kTcp))
    return fail(HALYARD_INVALID_ARGUMENT,
                "expected tls://HOST:PORT, tcp://HOST:PORT, unix:///PATH or fd://, found '{}'", text);
  address.transport = is_tls ? Transport::tls : Transport::tcp;
  address.tcp = REMOTE_TRY(parse_host_port(text.substr(kTls.size())));
  return address;
}

bool is_loopback(int socket) {
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0 || !is_loopback(own)) return false;
  sockaddr_storage peer = {};
  size = sizeof peer;
  // A listening socket has no peer.
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || is_loopback(peer);
}

Result<Descriptor> connect_tcp(const HostPort& to, std::chrono::milliseconds timeout) {
  const Addresses addresses = REMOTE_TRY(resolve(to, 0));
  int reason = EHOSTUNREACH;
  for (const addrinfo* it = addresses.get(); it; it = it->ai_next) {
    Descriptor socket(::socket(it->ai_family, kSocketKind, 0));
    if (socket.get() < 0) {
      reason = errno;
      continue;
    }
    reason = ::connect(socket.get(), it->ai_addr, it->ai_addrlen) == 0 ? 0 : errno;
    if (reason == EINPROGRESS) reason = finish_connecting(socket.get(), timeout);
    if (reason != 0) continue;
    send_at_once(socket.get());
    return socket;
  }
  if (reason == ETIMEDOUT)
    return fail(HALYARD_DEADLINE_EXCEEDED, "'{}' did not answer within {} ms; is the host up?", to.text(),
                timeout.count());
  return fail(HALYARD_UNAVAILABLE, "cannot connect to '{}': {}; is vm-device running there?", to.text(),
              error_text(reason));
}

Result<Descriptor> connect_unix(const std::string& path) {
  const sockaddr_un address = REMOTE_TRY(unix_address(path));
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail(errno == EACCES ? HALYARD_PERMISSION_DENIED : HALYARD_UNAVAILABLE,
                "cannot connect to Unix socket '{}': {}; is vm-device --listen=unix://{} running?", path,
                error_text(errno), path);
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return socket;
}

Result<Descriptor> listen_tcp(const HostPort& at) {
  const Addresses addresses = REMOTE_TRY(resolve(at, AI_PASSIVE));
  int reason = EADDRNOTAVAIL;
  for (const addrinfo* it = addresses.get(); it; it = it->ai_next) {
    Descriptor socket(::socket(it->ai_family, kSocketKind, 0));
    const int on = 1;
    if (socket.get() >= 0) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket.get() >= 0 && ::bind(socket.get(), it->ai_addr, it->ai_addrlen) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0) {
      send_at_once(socket.get());  // inherited by accepted connections
      return socket;
    }
    reason = errno;
  }
  return fail(reason == EADDRINUSE ? HALYARD_ALREADY_EXISTS : HALYARD_UNAVAILABLE,
              "cannot listen on '{}': {}", at.text(), error_text(reason));
}

Result<Descriptor> listen_unix(const std::string& path) {
  const sockaddr_un address = REMOTE_TRY(unix_address(path));
  const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
  struct stat found = {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode))
      return fail(HALYARD_ALREADY_EXISTS, "cannot listen on Unix socket '{}': the file is no socket", path);
    const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (probe.get() >= 0 && ::connect(probe.get(), raw, sizeof address) == 0)
      return fail(HALYARD_ALREADY_EXISTS, "cannot listen on Unix socket '{}': another process listens there",
                  path);
    ::unlink(path.c_str());
  }
  Descriptor socket(::socket(AF_UNIX, kSocketKind, 0));
  // The mode is set before anybody can connect: nobody can before listen().
  if (socket.get() < 0 || ::bind(socket.get(), raw, sizeof address) != 0 ||
      ::chmod(path.c_str(), 0660) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
    return fail(HALYARD_UNAVAILABLE, "cannot listen on Unix socket '{}': {}", path, error_text(errno));
  return socket;
}

uint16_t port_of(int socket) {
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

Result<PeerUser> peer_user(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return fail(HALYARD_UNAUTHENTICATED, "the user of the other process is not known: {}", error_text(errno));
  return PeerUser{peer.uid, peer.gid, peer.pid};
}

std::string peer_text(int socket) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "nobody";
  char host[64] = {}, port[16] = {};
  if (peer.ss_family == AF_UNIX ||
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&peer), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unix";
  return fmt::format("{}:{}", host, port);
}

}  // namespace halyard::remote
