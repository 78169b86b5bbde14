// Records of allocations. Those that ended before the peak are dropped, because no later peak can have them.
#include "hal/trace/memory_log.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/thread_local.h"

namespace halyard::hal {

namespace {

HALYARD_SMALL_THREAD_LOCAL thread_local const std::string_view* innermost_maker = nullptr;

}  // namespace

MakerScope::MakerScope(std::string_view maker) noexcept : before_(innermost_maker), maker_(maker) {
  innermost_maker = &maker_;
}

MakerScope::~MakerScope() { innermost_maker = before_; }

std::string_view current_maker() noexcept { return innermost_maker ? *innermost_maker : "the host"; }

uint64_t MemoryLog::allocated(uint64_t bytes, std::string_view maker, uint64_t time) {
  const std::lock_guard lock(mutex_);
  auto known = numbers_.find(maker);
  if (known == numbers_.end()) {
    if (makers_.size() >= kMaxMakers) maker = "others";
    known = numbers_.try_emplace(std::string(maker), static_cast<uint32_t>(makers_.size())).first;
    if (known->second == makers_.size()) makers_.emplace_back(maker);
  }
  const uint64_t number = ++events_;
  records_.emplace_hint(records_.end(), number, Record{bytes, known->second, number});
  live_ += bytes;
  add_point(time);
  if (live_ > peak_) {
    std::erase_if(records_, [](const auto& record) { return record.second.end != UINT64_MAX; });
    peak_ = live_;
    peak_event_ = number;
    peak_time_ = time;
  }
  return number;
}

void MemoryLog::freed(uint64_t number, uint64_t time) {
  const std::lock_guard lock(mutex_);
  const auto record = records_.find(number);
  if (record == records_.end()) return;
  live_ -= record->second.bytes;
  record->second.end = ++events_;
  // Made after the peak and gone: part of no peak.
  if (record->second.begin > peak_event_) records_.erase(record);
  add_point(time);
}

// With more changes than there is room, each point stands for several changes and has the highest level of
// them.
void MemoryLog::add_point(uint64_t time) {
  if (pending_ != 0 && pending_ < stride_) {
    points_.back().bytes = std::max(points_.back().bytes, live_);
    pending_ = (pending_ + 1) % stride_;
    return;
  }
  if (points_.size() >= kMaxPoints) {
    for (size_t i = 0; i < points_.size() / 2; ++i)
      points_[i] = {points_[2 * i].time, std::max(points_[2 * i].bytes, points_[2 * i + 1].bytes)};
    points_.resize(points_.size() / 2);
    stride_ *= 2;
  }
  points_.push_back({time, live_});
  pending_ = 1 % stride_;
}

MemoryLog::Report MemoryLog::report() const {
  const std::lock_guard lock(mutex_);
  Report report;
  report.peak_bytes = peak_;
  report.peak_time = peak_time_;
  report.points = points_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> counts;  // by maker and size
  for (const auto& [number, record] : records_)
    if (record.begin <= peak_event_ && record.end > peak_event_) ++counts[{record.maker, record.bytes}];
  std::multimap<uint64_t, Alive, std::greater<>> largest_first;
  for (const auto& [key, count] : counts)
    largest_first.emplace(key.second * count, Alive{key.second, count, makers_[key.first]});
  for (auto& [bytes, alive] : largest_first) report.alive.push_back(std::move(alive));
  return report;
}

}  // namespace halyard::hal
