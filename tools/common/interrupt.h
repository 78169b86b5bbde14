// Signals that ask a tool to stop: SIGINT (Ctrl-C), SIGTERM and SIGHUP. The first signal asks; the second
// terminates the process. Signals are caught while an Interrupt exists. A signal that was ignored when the
// process started (nohup, a background job) stays ignored.
#pragma once

#include <csignal>
#include <functional>
#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

// The exit codes of a tool that a signal has stopped, in the convention of shells.
inline constexpr int kInterrupted = 128 + SIGINT;
inline constexpr int kTerminated = 128 + SIGTERM;
inline constexpr int kHungUp = 128 + SIGHUP;

// At most one may exist, because a process has one action for each signal.
class Interrupt {
 public:
  // For work that polls `happened`. Starts no thread.
  Interrupt();
  // For work that cannot poll. After a signal, a thread for signals calls `stop` twenty times a second until
  // this object is destroyed, so that work that begins after the first call is stopped too.
  explicit Interrupt(std::function<void()> stop);
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  // Afterwards `stop` is not running.
  ~Interrupt();

  bool happened() const;
  // Valid after a signal: "Ctrl-C", "SIGTERM" or "SIGHUP", and 128 + the signal's number.
  std::string_view cause() const;
  int exit_code() const;

  // Adds the cause and exit_code() to the failure of stopped work; returns other failures unchanged.
  Failure explain(Failure failure) const;

  // Call in a child after fork(): lets these signals terminate the child.
  static void release_in_child();

 private:
  bool has_watch_ = false;   // of a thread
  sigset_t unblocked_ = {};  // the signal mask of the constructing thread
};

}  // namespace halyard::tools
