// The event loop of a tool: an io_context of Boost.Asio and the thread that runs it. Progress lines use it,
// because the main thread is busy.
#pragma once

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
  // Starts the thread, unless it is running. The thread blocks all signals. Throws std::system_error if the
  // system has no thread left.
  void start();
  // Stops the thread.
  void stop();

 private:
  struct State;
  Loop();

  std::unique_ptr<State> state_;
};

}  // namespace halyard::tools
