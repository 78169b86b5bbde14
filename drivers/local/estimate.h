// Estimates of durations, based on the last run. On a device with workers, the submitting thread runs work
// that takes less time than waking a worker.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace halyard::local {

using Clock = std::chrono::steady_clock;

// In nanoseconds.
inline constexpr uint64_t kWorthWaking = 50'000;   // shorter work runs on the submitting thread
inline constexpr uint64_t kWorthHelping = 2'000;   // minimum saving by one more helper thread
inline constexpr uint64_t kWorthSharing = 30'000;  // minimum total saving by sharing a command list
inline constexpr uint64_t kStaysAwake = 500'000;   // how long helpers of shared work spin for more work
inline constexpr uint64_t kBrief =
    10'000'000;  // a waiting thread runs only work shorter than this, and for no longer in total

// The duration of a recurring piece of work, in nanoseconds. Thread-safe.
class Cost {
 public:
  bool is_known() const { return value() != kUnknown; }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  // Records a measurement. The value is the shorter of the last two, because one interrupted run should not
  // change where the work runs next time.
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

// The durations of the workgroups of a kernel, which may differ: those at the ends of a tensor are smaller.
// Kept for small grids of one size, the first. Thread-safe.
class WorkgroupCosts {
 public:
  static constexpr uint64_t kMost = 32;

  // Whether the costs are those of grids with this number of workgroups.
  bool are_for(uint64_t workgroups) {
    if (workgroups == 0 || workgroups > kMost) return false;
    uint64_t known = 0;
    return workgroups_.compare_exchange_strong(known, workgroups, std::memory_order_relaxed) ||
           known == workgroups;
  }
  Cost& of(uint64_t workgroup) { return costs_[workgroup]; }

 private:
  std::atomic<uint64_t> workgroups_ = 0;
  std::array<Cost, kMost> costs_;
};

// Measures only if `runs` is true, because devices without workers need no estimates.
class Stopwatch {
 public:
  explicit Stopwatch(bool runs) : runs_(runs) {
    if (runs_) begin_ = Clock::now();
  }
  uint64_t elapsed() const {  // nanoseconds; only if it runs
    return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin_).count());
  }
  // The nanoseconds since the start, which becomes now.
  uint64_t restart() {
    const uint64_t before = elapsed();
    begin_ += std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(before));
    return before;
  }
  // Records the mean over `parts` equal parts.
  void record(Cost& cost, uint64_t parts = 1) const {
    if (runs_) cost.learn(elapsed() / parts + 1);
  }

 private:
  bool runs_;
  Clock::time_point begin_;
};

// The cost of unknown work, and the upper limit of all costs, so that sums do not overflow.
inline constexpr uint64_t kMaxCost = 1'000'000'000;

inline uint64_t cost_of(uint64_t each, uint64_t count) {
  return each != 0 && count > kMaxCost / each ? kMaxCost : each * count;
}

}  // namespace halyard::local
