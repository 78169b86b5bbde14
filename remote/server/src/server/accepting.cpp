// Without descriptors to spare, accepting pauses: others may be closed meanwhile.
#include "server/accepting.h"

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <memory>

#include "server/page.h"

namespace halyard::device_server {

namespace {

namespace asio = boost::asio;

constexpr int kPages = 64;  // at once

struct Accepting {
  using Accepted = std::function<void(remote::Descriptor)>;
  Accepting(asio::posix::stream_descriptor given, Accepted taker)
      : socket(std::move(given)), accepted(std::move(taker)), pause(socket.get_executor()) {}
  asio::posix::stream_descriptor socket;
  const Accepted accepted;
  asio::steady_timer pause;
};

void await_connection(std::shared_ptr<Accepting> accepting);

void accept(std::shared_ptr<Accepting> accepting) {
  remote::Descriptor client(
      ::accept4(accepting->socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (client.get() >= 0) {
    accepting->accepted(std::move(client));
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    accepting->pause.expires_after(std::chrono::milliseconds(100));
    asio::steady_timer& pause = accepting->pause;
    pause.async_wait([accepting = std::move(accepting)](boost::system::error_code error) mutable {
      if (!error) await_connection(std::move(accepting));
    });
    return;
  }
  await_connection(std::move(accepting));
}

void await_connection(std::shared_ptr<Accepting> accepting) {
  asio::posix::stream_descriptor& socket = accepting->socket;
  socket.async_wait(asio::posix::stream_descriptor::wait_read,
                    [accepting = std::move(accepting)](boost::system::error_code error) mutable {
                      if (!error) accept(std::move(accepting));
                    });
}

}  // namespace

void accept_connections(asio::io_context& io, remote::Descriptor listening,
                        std::function<void(remote::Descriptor)> accepted) {
  await_connection(std::make_shared<Accepting>(asio::posix::stream_descriptor(io, listening.release()),
                                               std::move(accepted)));
}

void accept_page(asio::io_context& io, remote::Descriptor listening, std::function<std::string()> metrics) {
  const auto pages = std::make_shared<std::atomic<int>>(0);
  accept_connections(io, std::move(listening),
                     [&io, pages, metrics = std::move(metrics)](remote::Descriptor client) {
                       if (pages->fetch_add(1) >= kPages) {
                         pages->fetch_sub(1);
                         return;
                       }
                       sockaddr_storage own = {};
                       socklen_t size = sizeof own;
                       ::getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &size);
                       asio::generic::stream_protocol::socket connected(io);
                       connected.assign(asio::generic::stream_protocol(own.ss_family, 0), client.release());
                       // Counted until the answer is given, or given up.
                       const std::shared_ptr<void> counted(nullptr, [pages](void*) { pages->fetch_sub(1); });
                       answer_page(std::move(connected), [metrics, counted] { return metrics(); });
                     });
}

}  // namespace halyard::device_server
