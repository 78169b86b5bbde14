// TimerFd: a timer of the system, on which a thread sleeps. Other threads can set and change the time without
// waking the thread.
#pragma once

#include <cstdint>

#include "status.h"

namespace halyard::vulkan {

class TimerFd {
 public:
  static constexpr uint64_t kNow = 1;  // a time in the past

  TimerFd() = default;
  TimerFd(const TimerFd&) = delete;
  TimerFd& operator=(const TimerFd&) = delete;
  ~TimerFd();

  // Must be called first. RESOURCE_EXHAUSTED: no file descriptor.
  Result<> open();
  // Sets the time, CLOCK_MONOTONIC in nanoseconds, replacing the previous one. Thread-safe, does not block.
  void set(uint64_t time);
  // Blocks until the set time has come; returns once for each set time.
  void wait();

 private:
  int fd_ = -1;
};

}  // namespace halyard::vulkan
