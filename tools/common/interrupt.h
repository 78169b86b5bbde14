// Ctrl-C: the first asks for an end, the second ends the process at once. What is caught is SIGINT, while an
// Interrupt lives; where the process was started with SIGINT ignored (nohup, a background job) it stays so.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "common/failure.h"

namespace halyard::tools {

inline constexpr int kInterrupted = 130;  // the exit code of a tool that Ctrl-C has ended

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

  // Of work that was stopped: its failure, saying so and with the exit code kInterrupted. Other failures are
  // left as they are.
  Failure explain(Failure failure) const;

 private:
  void watch();

  bool caught_ = false;  // SIGINT is
  std::function<void()> stop_;
  int wake_ = -1;  // an eventfd that wakes the thread
  std::atomic<bool> over_ = false;
  std::thread watcher_;
};

}  // namespace halyard::tools
