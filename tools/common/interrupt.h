// Signals that ask for an end: SIGINT (Ctrl-C), SIGTERM and SIGHUP. The first asks, the second ends the
// process at once. They are caught while an Interrupt lives; one that the process was started to ignore
// (nohup, a background job) stays ignored.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <string_view>
#include <thread>

#include "common/failure.h"

namespace halyard::tools {

// The exit codes of a tool that a signal has ended, as shells give them.
inline constexpr int kInterrupted = 128 + SIGINT;
inline constexpr int kTerminated = 128 + SIGTERM;
inline constexpr int kHungUp = 128 + SIGHUP;

// At most one lives at a time: a process has one action for a signal.
class Interrupt {
 public:
  // For work that asks `happened` now and then.
  Interrupt();
  // For work of this thread that must be told. Once it has happened, a thread of this object calls `stop`
  // twenty times a second until this is gone: what had not begun yet when it was called first is stopped as
  // well.
  explicit Interrupt(std::function<void()> stop);
  Interrupt(const Interrupt&) = delete;
  ~Interrupt();

  bool happened() const;
  // Once it has happened. "Ctrl-C", "SIGTERM" or "SIGHUP", and 128 + the signal's number.
  std::string_view cause() const;
  int exit_code() const;

  // Of work that was stopped: its failure, saying so and with exit_code(). Other failures are left as they
  // are.
  Failure explain(Failure failure) const;

  // In a child that fork() has made: signals that are caught here end it.
  static void release_in_child();

 private:
  void watch();

  std::function<void()> stop_;
  int wake_ = -1;            // an eventfd that wakes the thread
  sigset_t unblocked_ = {};  // the mask of the constructing thread
  std::atomic<bool> over_ = false;
  std::thread watcher_;
};

}  // namespace halyard::tools
