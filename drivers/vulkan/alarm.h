// Alarm: a thread sleeps until a time that other threads can set and change without waking it.
#pragma once

#include <cstdint>

#include "status.h"

namespace halyard::vulkan {

class Alarm {
 public:
  static constexpr uint64_t kNow = 1;  // a time in the past

  Alarm() = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();

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
