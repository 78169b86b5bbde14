// Pause: the time between two polls for the progress of other processes. First, polls follow each other at
// once. After 50 us without progress, the thread sleeps for an eighth of that time, within limits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace halyard::mpi {

uint64_t now();  // nanoseconds of CLOCK_MONOTONIC

class Pause {
 public:
  // The time to sleep if nothing has moved for `idle_ns`, in nanoseconds. 0: do not sleep.
  static uint64_t after(uint64_t idle_ns) {
    constexpr uint64_t kSpinNs = 50'000;
    constexpr uint64_t kMinNs = 20'000;
    constexpr uint64_t kMaxNs = 500'000;
    return idle_ns < kSpinNs ? 0 : std::clamp(idle_ns / 8, kMinNs, kMaxNs);
  }

  // Called after each poll.
  void rest(bool has_moved) {
    const uint64_t time = now();
    if (has_moved) moved_at_ = time;
    if (const uint64_t sleep_ns = after(time - moved_at_); sleep_ns != 0) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(sleep_ns));
    } else {
      std::this_thread::yield();
    }
  }

 private:
  uint64_t moved_at_ = now();
};

}  // namespace halyard::mpi
