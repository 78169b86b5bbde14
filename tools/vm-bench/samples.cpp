// Order statistics of times.
#include "samples.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halyard::tools {

double clock_cost() {
  constexpr int kReadings = 1000;
  constexpr int kRounds = 9;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    Clock::time_point end = begin;
    for (int i = 0; i < kReadings; ++i) end = Clock::now();
    least = std::min(least, seconds_between(begin, end) / kReadings);
  }
  return least;
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

Summary summary_of(std::vector<double>& values) {
  constexpr double kShare = 0.99;
  Summary summary;
  summary.samples = values.size();
  summary.min = *std::ranges::min_element(values);
  summary.median = median_of(values);
  const auto rank = static_cast<ptrdiff_t>(std::ceil(kShare * static_cast<double>(values.size()))) - 1;
  std::ranges::nth_element(values, values.begin() + rank);
  summary.p99 = values[static_cast<size_t>(rank)];
  return summary;
}

Samples::Samples() {
  values_.reserve(kMaxKept);
  clear();
}

void Samples::clear() {
  values_.clear();
  min_ = std::numeric_limits<double>::infinity();
  stride_ = 1;
  skipped_ = 0;
}

void Samples::thin_out() {
  for (size_t i = 0; i < kMaxKept / 2; ++i) values_[i] = values_[2 * i + 1];
  values_.resize(kMaxKept / 2);
  stride_ *= 2;
}

std::optional<Summary> summary_of(const std::vector<const Samples*>& all) {
  std::vector<double> values;
  double min = std::numeric_limits<double>::infinity();
  for (const Samples* samples : all) {
    values.insert(values.end(), samples->values().begin(), samples->values().end());
    min = std::min(min, samples->min());
  }
  if (values.empty()) return std::nullopt;
  Summary summary = summary_of(values);
  summary.min = min;
  return summary;
}

}  // namespace halyard::tools
