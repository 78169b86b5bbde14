// One connection. Each request is answered before the next is read, so pipelined requests are answered in
// order.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <memory>

#include "server.h"

namespace halyard::tools::serve {

using SessionExecutor = boost::asio::strand<boost::asio::io_context::executor_type>;
using SessionSocket =
    boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, SessionExecutor>;

class Session {
 public:
  // Takes over the connection, or closes it if there are too many. `is_loopback`: accepted on a loopback
  // address, so Host is checked. The server must outlive the session.
  static void start(Server& server, SessionSocket socket, bool is_loopback);
  virtual ~Session() = default;

  // Any thread. Closes the connection when it has no request.
  virtual void drain() = 0;
  virtual void close() = 0;
  // If the client has closed the connection, cancels a call that was already running at the previous look().
  virtual void look() = 0;
};

}  // namespace halyard::tools::serve
