// Threads: those that run the handlers of an io_context. A handler may wait for a device, or for a client
// that does not receive. When all threads are in such handlers, another one is added, so that the other
// clients go on; it ends when it has been idle. A handler that throws ends nothing but itself.
#pragma once

#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

namespace halyard::device_server {

class Threads {
 public:
  using Log = std::function<void(std::string_view)>;
  Threads(boost::asio::io_context& io, Log log) : io_(io), log_(std::move(log)) {}
  // Runs the handlers on this many threads, and on at most `more` others, until stop(). Calls `beat` a few
  // times a second on this thread, which runs no handlers. Once.
  void run(size_t threads, size_t more, const std::function<void()>& beat);
  // Any thread, any number of times.
  void stop();
  size_t running() const;

 private:
  void add(bool stays);
  void run_handlers(bool stays);

  boost::asio::io_context& io_;
  const Log log_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  size_t running_ = 0;
  bool is_stopped_ = false;
  bool has_beaten_ = true;  // the handler that tests whether a thread is free has run
};

}  // namespace halyard::device_server
