// Sockets for clients: TCP, Unix, and inherited sockets.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server.h"
#include "socket.h"

namespace halyard::tools::serve {

// A listening socket and its text: "http://127.0.0.1:8080", "unix:/run/serve.sock".
struct Listening {
  int descriptor;
  std::string address;
};

inline constexpr uint64_t kMaxPort = 65535;

// `port` 0: any free port. `given`: the flag with the address, for messages. INVALID_ARGUMENT: no such
// address. ALREADY_EXISTS: it is in use. PERMISSION_DENIED.
Result<Listening> listen_tcp(const std::string& host, uint64_t port, std::string_view given);
// Replaces a socket without a listener. Other processes of the same user and group may connect.
Result<Listening> listen_unix(const std::string& path, std::string_view given);
// For a socket that is already listening.
Listening inherited(int descriptor);

// Accepts connections. One thread, except stop().
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // Takes over a connection. `is_loopback`: accepted on a loopback address.
  using Accepted = std::function<void(ClientSocket socket, bool is_loopback)>;

  Listener(Server& server, int descriptor, Accepted accepted);
  void start();
  // Any thread.
  void stop();

 private:
  using Executor = boost::asio::io_context::executor_type;
  void accept();

  Server& server_;
  const Accepted accepted_;
  const bool is_loopback_;
  boost::asio::strand<Executor> strand_;
  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol, boost::asio::strand<Executor>>
      acceptor_;
  boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, boost::asio::strand<Executor>>
      pause_;
};

}  // namespace halyard::tools::serve
