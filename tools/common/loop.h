// The event loop of a tool: an io_context of Boost.Asio and the thread that runs it. Signals and progress
// lines use it, because the main thread is busy.
#pragma once

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace halyard::tools {

// One thread, except where stated otherwise.
class Loop {
 public:
  // The loop of the process, created if there is none. Throws std::system_error if the system has no
  // descriptor left.
  static std::shared_ptr<Loop> get();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  // Stops the thread; handlers that have not run are dropped.
  ~Loop();

  // For timers and similar objects. Set them up before start(): then no thread is woken.
  boost::asio::io_context& context();
  // Starts the thread, unless it is running. The thread receives SIGINT, SIGTERM and SIGHUP and blocks all
  // other signals. Throws std::system_error if the system has no thread left.
  void start();
  // Stops the thread.
  void stop();
  // Runs `action` on the loop's thread, between two handlers, and waits for it. Without a thread, runs it
  // here. Any thread.
  void run(const std::function<void()>& action);

 private:
  struct State;
  Loop();

  std::unique_ptr<State> state_;
};

}  // namespace halyard::tools
