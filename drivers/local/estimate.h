// Estimates: how long work will take, told by what it took the last time. Work of a device that has workers
// is done by the thread that submits it where that is over sooner than a worker would be awake.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "halyard/driver.h"

namespace halyard::local {

using Clock = std::chrono::steady_clock;

// Nanoseconds.
inline constexpr uint64_t kWorthWaking = 50'000;    // work that takes less is done by who submits it
inline constexpr uint64_t kWorthHelping = 15'000;   // what a thread that helps has to take off the others
inline constexpr uint64_t kWorthSharing = 100'000;  // work is shared where that saves so much in all
inline constexpr uint64_t kStaysAwake = 500'000;    // so long a thread looks for more of work that is shared
inline constexpr uint64_t kBrief = 10'000'000;  // a thread that waits may work so long, and longer no more

// Nanoseconds of what is done again and again; any thread.
class Cost {
 public:
  bool is_known() const { return value() != kUnknown; }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  // What it took this time. The shorter of the last two times counts: in one of them another program may have
  // been in the way, and that should not change who does the work next time.
  void learn(uint64_t nanoseconds) {
    const uint64_t before = last_.load(std::memory_order_relaxed);
    last_.store(nanoseconds, std::memory_order_relaxed);
    value_.store(std::min(before, nanoseconds), std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kUnknown = UINT64_MAX;
  std::atomic<uint64_t> value_ = kUnknown;
  std::atomic<uint64_t> last_ = kUnknown;
};

// What work takes, where anybody wants to know: devices without workers have no choice anyway.
class Stopwatch {
 public:
  explicit Stopwatch(bool runs) : runs_(runs) {
    if (runs_) begin_ = Clock::now();
  }
  uint64_t elapsed() const {  // nanoseconds, of one that runs
    return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin_).count());
  }
  // One of so many equal parts.
  void tell(Cost& cost, uint64_t parts = 1) const {
    if (runs_) cost.learn(elapsed() / parts + 1);
  }

 private:
  bool runs_;
  Clock::time_point begin_;
};

// Nothing is said to take longer, and what is not known is said to take so long. Sums of a few stay numbers.
inline constexpr uint64_t kLongestCost = 1'000'000'000;

inline uint64_t cost_of(uint64_t each, uint64_t count) {
  return each != 0 && count > kLongestCost / each ? kLongestCost : each * count;
}

uint64_t cost_of(const halyard_command_t& command);
// Of writing, copying or reading so many bytes.
uint64_t bytes_cost(uint64_t length);
uint64_t dispatch_cost(const halyard_command_dispatch_t& dispatch);

// Of commands or workgroups that may run at the same time, in any order.
struct Load {
  uint64_t cost = 0;     // of all of them
  uint64_t longest = 0;  // the longest piece
  uint64_t pieces = 0;

  void add(const halyard_command_t& command);
  // How much sooner it is over on so many threads that are all awake.
  uint64_t saving(uint32_t threads) const {
    const uint64_t shared = std::max(longest, cost / threads) + kWorthHelping;
    return pieces > 1 && cost > shared ? cost - shared : 0;
  }
};

}  // namespace halyard::local
