// Times of single calls or blocks of calls, and their statistics: minimum, median, 99th percentile.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace halyard::tools {

using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Measures the time of reading the clock, in seconds.
double clock_cost();

struct Summary {
  double min = 0;
  double median = 0;
  double p99 = 0;  // the smallest time that is not below 99 % of all times
  uint64_t samples = 0;
};

// The median of one or more times. Reorders them.
double median_of(std::vector<double>& values);
Summary summary_of(std::vector<double>& values);

// Times in memory that is allocated in advance. When it is full, every second time is dropped, and from then
// on only every second new time is kept (then every fourth, and so on), so that the kept times are spread
// evenly over the run.
class Samples {
 public:
  Samples();
  void clear();
  void add(double seconds) {
    if (seconds < min_) min_ = seconds;
    if (++skipped_ < stride_) return;
    skipped_ = 0;
    values_.push_back(seconds);
    if (values_.size() == kMaxKept) thin_out();
  }
  const std::vector<double>& values() const { return values_; }
  double min() const { return min_; }  // including dropped times

 private:
  static constexpr size_t kMaxKept = size_t{1} << 16;
  void thin_out();

  std::vector<double> values_;
  double min_;
  uint64_t stride_ = 1;
  uint64_t skipped_ = 0;
};

// The combined statistics of several threads; nullopt if there are no samples.
std::optional<Summary> summary_of(const std::vector<const Samples*>& all);

}  // namespace halyard::tools
