// The socket of one client, and the coroutines that use it: all of one connection run on its strand.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace halyard::tools::serve {

using SocketExecutor = boost::asio::strand<boost::asio::io_context::executor_type>;
using ClientSocket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, SocketExecutor>;

template <typename T = void>
using Task = boost::asio::awaitable<T, SocketExecutor>;

inline constexpr boost::asio::use_awaitable_t<SocketExecutor> use_task;

}  // namespace halyard::tools::serve
