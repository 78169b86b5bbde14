// bind, listen, accept.
#include "listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/dispatch.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/descriptor.h"

namespace halyard::tools::serve {

namespace asio = boost::asio;

namespace {

std::unexpected<Failure> cannot_listen(std::string_view address) {
  const int error = errno;
  const halyard_status_code_t code = error == EADDRINUSE                 ? HALYARD_ALREADY_EXISTS
                                     : error == EACCES || error == EPERM ? HALYARD_PERMISSION_DENIED
                                                                         : HALYARD_INVALID_ARGUMENT;
  const char* const advice = error == EADDRINUSE ? "; choose another port, or stop the process that uses it"
                             : error == ENOENT   ? "; check the path"
                                                 : "";
  return fail(code, "cannot listen on {}: {}{}", address, std::strerror(error), advice);
}

std::string text_of(const sockaddr_storage& address, socklen_t size) {
  if (address.ss_family == AF_UNIX) {
    const auto& local = reinterpret_cast<const sockaddr_un&>(address);
    const size_t length = size - offsetof(sockaddr_un, sun_path);
    return "unix:" + std::string(local.sun_path, ::strnlen(local.sun_path, length));
  }
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return address.ss_family == AF_INET6 ? fmt::format("http://[{}]:{}", host, port)
                                       : fmt::format("http://{}:{}", host, port);
}

// Whether the address is a TCP loopback address.
bool is_loopback(int descriptor) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  constexpr uint8_t kLoopback = 127;
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == kLoopback;
  if (address.ss_family != AF_INET6) return false;
  const in6_addr& own = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&own) || (IN6_IS_ADDR_V4MAPPED(&own) && own.s6_addr[12] == kLoopback);
}

}  // namespace

Result<Listening> listen_tcp(const std::string& host, uint64_t port, std::string_view given) {
  if (port > kMaxPort)
    return fail(HALYARD_INVALID_ARGUMENT, "{}: the port is {}; expected a number from 0 to {}", given, port,
                kMaxPort);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string number = std::to_string(port);
  if (const int error = ::getaddrinfo(host.c_str(), number.c_str(), &hints, &found))
    return fail(HALYARD_INVALID_ARGUMENT, "{}: {}; expected an address of this machine, such as 127.0.0.1",
                given, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  const std::string shown = host + ":" + number;
  Descriptor descriptor(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (descriptor.get() < 0) return cannot_listen(shown);
  const int on = 1;
  ::setsockopt(descriptor.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(descriptor.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(descriptor.get(), SOMAXCONN) != 0)
    return cannot_listen(shown);
  return inherited(descriptor.release());
}

Result<Listening> listen_unix(const std::string& path, std::string_view given) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(HALYARD_INVALID_ARGUMENT, "{}: expected a path of 1 to {} bytes", given,
                sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (descriptor.get() < 0) return cannot_listen(path);
  struct stat status = {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (probe.get() >= 0 &&
        ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED)
      ::unlink(path.c_str());
  }
  const mode_t mask = ::umask(0117);
  const int bound = ::bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(mask);
  errno = error;
  if (bound != 0 || ::listen(descriptor.get(), SOMAXCONN) != 0) return cannot_listen(path);
  return inherited(descriptor.release());
}

Listening inherited(int descriptor) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  return {descriptor, text_of(address, size)};
}

Listener::Listener(Server& server, int descriptor, Accepted accepted)
    : server_(server),
      accepted_(std::move(accepted)),
      is_loopback_(is_loopback(descriptor)),
      strand_(server.runtime.io.get_executor()),
      acceptor_(strand_),
      pause_(strand_) {
  int family = AF_INET;
  socklen_t size = sizeof family;
  ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &size);
  acceptor_.assign(asio::generic::stream_protocol(family, 0), descriptor);
}

void Listener::start() {
  asio::dispatch(strand_, [self = shared_from_this()] { self->accept(); });
}

void Listener::stop() {
  asio::dispatch(strand_, [self = shared_from_this()] {
    boost::system::error_code ignored;
    (void)self->acceptor_.close(ignored);
    self->pause_.cancel();
  });
}

void Listener::accept() {
  if (!acceptor_.is_open()) return;
  acceptor_.async_accept(
      SocketExecutor(server_.runtime.io.get_executor()),
      [self = shared_from_this()](const boost::system::error_code& error, ClientSocket socket) {
        if (!self->acceptor_.is_open()) return;
        if (!error) {
          // Fails for a Unix socket, without effect.
          const int on = 1;
          ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          self->accepted_(std::move(socket), self->is_loopback_);
          return self->accept();
        }
        if (error == asio::error::connection_aborted) return self->accept();
        // No free descriptors or memory: wait until connections are closed.
        self->server_.log.error("accept_failed", {{"error", error.message()}});
        self->pause_.expires_after(std::chrono::milliseconds(100));
        self->pause_.async_wait([self](const boost::system::error_code& stopped) {
          if (!stopped) self->accept();
        });
      });
}

}  // namespace halyard::tools::serve
