// Stopping a thread in the middle of a call, wherever it is just then, while another thread does something:
// so two threads meet inside of a function also where they share one processor.
#pragma once

#include <functional>

namespace halyard::cts {

// Of the thread that makes it. One at a time in a process.
class Interruption {
 public:
  Interruption();  // throws std::runtime_error where the system has no timer for it
  Interruption(const Interruption&) = delete;
  ~Interruption();

  // Runs `call`, and stops it at some moment of it, which differs from round to round. Meanwhile serve(), in
  // another thread, runs its action; for a short time at most, since the call may hold a lock that the action
  // needs. Comes back when both are over.
  void during(const std::function<void()>& call);

 private:
  long delay_ns_ = 1000;  // of the timer: as long as it takes to be in the call
  unsigned rounds_ = 0;
};

// The other thread's part: waits until a call was stopped, runs `action`, and again, until `over()`.
void serve_interruptions(const std::function<void()>& action, const std::function<bool()>& over);

}  // namespace halyard::cts
