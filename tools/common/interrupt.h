// Signals that ask a tool to end: SIGINT (Ctrl-C), SIGTERM and SIGHUP. The first signal asks, the second ends
// the process at once. Signals are caught while an Interrupt lives; a signal that the process was started to
// ignore (nohup, a background job) stays ignored.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <string_view>

#include "common/failure.h"

namespace boost::asio {
class io_context;
}

namespace halyard::tools {

class Loop;

// The exit codes of a tool that a signal has ended, as shells report them.
inline constexpr int kInterrupted = 128 + SIGINT;
inline constexpr int kTerminated = 128 + SIGTERM;
inline constexpr int kHungUp = 128 + SIGHUP;

// At most one exists at a time, because a process has one action for each signal.
class Interrupt {
 public:
  // For work that asks `happened` now and then, on the thread that makes this object. Starts no thread.
  Interrupt();
  // For work that cannot ask. After a signal, the thread of the tool's loop calls `stop` twenty times a
  // second until this object is destroyed, so that work that begins after the first call is stopped too.
  explicit Interrupt(std::function<void()> stop);
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  // `stop` is not running afterwards.
  ~Interrupt();

  bool happened() const;
  // After a signal: "Ctrl-C", "SIGTERM" or "SIGHUP", and 128 + the signal's number.
  std::string_view cause() const;
  int exit_code() const;

  // Adds the cause and exit_code() to the failure of work that was stopped; returns other failures unchanged.
  Failure explain(Failure failure) const;

  // In a child made by fork(): the signals that are caught here end the child.
  static void release_in_child();

 private:
  struct State;

  std::shared_ptr<Loop> loop_;                    // if there is a `stop`
  std::unique_ptr<boost::asio::io_context> own_;  // otherwise; happened() runs its handlers
  std::shared_ptr<State> state_;
  sigset_t unblocked_ = {};  // the mask of the constructing thread
};

}  // namespace halyard::tools
