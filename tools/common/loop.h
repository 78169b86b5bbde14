// The event loop of a tool: an io_context of Boost.Asio and the thread that runs it. Signals and progress
// lines use it, because the main thread is busy with the tool's work.
#pragma once

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace halyard::tools {

// One thread, except where it says otherwise.
class Loop {
 public:
  // The loop of the process; it is created when nothing else holds it. Throws std::system_error if the system
  // has no descriptor left.
  static std::shared_ptr<Loop> get();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  // Ends the thread; handlers that have not run are dropped.
  ~Loop();

  // For timers and the like. Set them up before start(): that wakes no thread.
  boost::asio::io_context& context();
  // Starts the thread, unless it runs. It takes SIGINT, SIGTERM and SIGHUP and blocks all other signals.
  // Throws std::system_error if the system has no thread left.
  void start();
  // Ends the thread.
  void stop();
  // Runs `action` on the loop's thread, between two handlers, and waits for it; or here, if there is no
  // thread. Any thread.
  void run(const std::function<void()>& action);

 private:
  struct State;
  Loop();

  std::unique_ptr<State> state_;
};

}  // namespace halyard::tools
