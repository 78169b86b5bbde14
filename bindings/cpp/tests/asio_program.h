// Shared by the tests of halyard/asio.hpp: either kind of Asio, and a program on an io_context.
#pragma once

#include <utility>

#ifdef HALYARD_STANDALONE_ASIO
#include <asio.hpp>
#else
#include <boost/asio.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#endif

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "halyard/asio.hpp"
#include "program.h"

#if HALYARD_CPP_ASIO_CANCELS_
#ifdef HALYARD_STANDALONE_ASIO
#include <asio/bind_cancellation_slot.hpp>
#else
#include <boost/asio/bind_cancellation_slot.hpp>
#endif
#endif

namespace net = halyard::net;
using namespace std::chrono_literals;

// The code of a completion; OK for none.
inline halyard::StatusCode code_in(const std::exception_ptr& error, std::string* text = nullptr) {
  if (!error) return halyard::StatusCode::OK;
  return code_of([&] { std::rethrow_exception(error); }, text);
}

// Runs the context until it has no more work; it can be run again.
inline void run(net::io_context& io) {
  io.run();
  io.restart();
}

// Runs the context on several threads until it has no more work.
inline void run_on(net::io_context& io, int threads) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back([&] { io.run(); });
  io.run();
  for (std::thread& other : others) other.join();
}
