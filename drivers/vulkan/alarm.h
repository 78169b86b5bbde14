// Alarm: where a thread sleeps until a time that others set and move without waking it.
#pragma once

#include <cstdint>

#include "status.h"

namespace halyard::vulkan {

class Alarm {
 public:
  static constexpr uint64_t kNow = 1;  // a time that has come

  Alarm() = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();

  // Before anything else. RESOURCE_EXHAUSTED: no file descriptor.
  Result<> open();
  // CLOCK_MONOTONIC in nanoseconds; instead of the time that was set before. Any thread, without waiting.
  void set(uint64_t time);
  // Until the time that is set has come: once for each.
  void wait();

 private:
  int fd_ = -1;
};

}  // namespace halyard::vulkan
