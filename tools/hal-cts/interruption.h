// Stops a thread at some point within a call while another thread does something, so that two threads are
// inside of one function at the same time even on a single processor.
#pragma once

#include <functional>

namespace halyard::cts {

// Stops the thread that makes this object. One at a time in a process.
class Interruption {
 public:
  Interruption();  // throws std::runtime_error if the system has no timer left
  Interruption(const Interruption&) = delete;
  ~Interruption();

  // Runs `call` and stops it at a point that differs from round to round. Meanwhile serve_interruptions()
  // runs its action in another thread. The call is stopped for a short time at most, because it may hold a
  // lock that the action needs. Returns when both have ended.
  void during(const std::function<void()>& call);

 private:
  long delay_ns_ = 1000;  // of the timer: long enough for the thread to be in the call
  unsigned rounds_ = 0;
};

// The part of the other thread: waits until a call is stopped and runs `action`, again and again until
// `over()`.
void serve_interruptions(const std::function<void()>& action, const std::function<bool()>& over);

}  // namespace halyard::cts
