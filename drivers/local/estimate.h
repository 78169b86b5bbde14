// Estimates: how long work will take, told by what it took the last time. Work of a device that has workers
// is done by the thread that submits it where that is over sooner than a worker would be awake.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "halyard/driver.h"

namespace halyard::local {

using Clock = std::chrono::steady_clock;

// What waking a thread, and waiting for it, takes; less is not worth it.
inline constexpr std::chrono::nanoseconds kWorthWaking = std::chrono::microseconds(50);

// Nanoseconds of what is done again and again; any thread.
class Cost {
 public:
  static constexpr uint64_t kUnknown = UINT64_MAX;
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  void set(uint64_t nanoseconds) { value_.store(nanoseconds, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = kUnknown;
};

// Whether all of it is surely over before a worker would have begun. False where nothing is known.
bool is_quick(const halyard_operation_t& operation);

}  // namespace halyard::local
