// Stops a thread at some point within a call while another thread does something, so that two threads are
// inside of one function at the same time even on a single processor.
#pragma once

#include <functional>

namespace halyard::cts {

// Stops the thread that creates this object. At most one per process.
class Interruption {
 public:
  Interruption();  // throws std::runtime_error if the system has no timer left
  Interruption(const Interruption&) = delete;
  ~Interruption();

  // Runs `call` and stops it at a point that differs in each round. Meanwhile serve_interruptions() runs its
  // action in another thread. The call is stopped only for a short time, because it may hold a lock that the
  // action needs. Returns when both have ended.
  void during(const std::function<void()>& call);

 private:
  long delay_ns_ = 1000;  // timer delay, long enough for the thread to be in the call
  unsigned rounds_ = 0;
};

// Called by the other thread: waits until a call is stopped and runs `action`, repeatedly until `over()`.
void serve_interruptions(const std::function<void()>& action, const std::function<bool()>& over);

}  // namespace halyard::cts
