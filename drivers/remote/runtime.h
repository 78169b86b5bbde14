// Runtime: the few threads of an instance, which serve all its connections, and the queue of calls to the
// host.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "halyard/driver.hpp"

namespace halyard::remote {

namespace kit = halyard::kit;

class Stream;

class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  // Starts the threads, if they have not been started. Throws std::system_error.
  void start();
  boost::asio::io_context& io() { return io_; }
  // A stream that has a receiver: if no thread is left to tell the receiver of its end, it is dropped.
  void add(std::weak_ptr<Stream> stream);
  // Takes the host's calls out of the list and runs them, one at a time for all connections: a call may wait
  // for other work, so it never holds more than one of the threads [R88]. `run` later, when no lock is held.
  void take_calls(kit::TaskList& ready);
  void run_calls();
  bool has_calls() const { return has_calls_.load(std::memory_order_acquire); }

 private:
  void run();

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ = make_work_guard(io_);
  std::mutex mutex_;  // guards the members below
  kit::TaskQueue calls_;
  bool is_calling_ = false;
  std::atomic<bool> has_calls_ = false;
  std::vector<std::thread> threads_;
  std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace halyard::remote
