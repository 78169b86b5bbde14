// Pause: between two looks for what other processes do. The first ones follow each other at once; when
// nothing has moved for 50 us, the thread sleeps for an eighth of the time that it has waited, within limits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace halyard::mpi {

uint64_t now();  // nanoseconds of CLOCK_MONOTONIC

class Pause {
 public:
  // How long to sleep when nothing has moved for `idle_ns`; 0: not at all.
  static uint64_t after(uint64_t idle_ns) {
    constexpr uint64_t kSpinNs = 50'000;
    constexpr uint64_t kShortestNs = 20'000;
    constexpr uint64_t kLongestNs = 500'000;
    return idle_ns < kSpinNs ? 0 : std::clamp(idle_ns / 8, kShortestNs, kLongestNs);
  }

  // After a look.
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
