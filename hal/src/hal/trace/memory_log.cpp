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

bool QueuedMemory::must_follow(const QueuedMemory& other) const {
  return std::ranges::any_of(waits, [&](const Point& wait) {
    return std::ranges::any_of(other.signals, [&](const Point& signal) {
      return wait.first == signal.first && wait.second >= signal.second;
    });
  });
}

MemoryLog::Records::iterator MemoryLog::add_record(uint64_t bytes, std::string_view maker) {
  auto known = numbers_.find(maker);
  if (known == numbers_.end()) {
    if (makers_.size() >= kMaxMakers) maker = "others";
    known = numbers_.try_emplace(std::string(maker), static_cast<uint32_t>(makers_.size())).first;
    if (known->second == makers_.size()) makers_.emplace_back(known->first);
  }
  return records_.emplace_hint(records_.end(), ++allocations_, Record{bytes, known->second, 0});
}

void MemoryLog::begin(Records::iterator record, uint64_t time) {
  const auto [bytes, maker, begin, end] = record->second;
  if (begin != 0) return;
  record->second.begin = ++events_;
  live_ += bytes;
  add_point(time);
  if (live_ > peak_) {
    std::erase_if(records_, [](const auto& each) { return each.second.end != UINT64_MAX; });
    peak_ = live_;
    peak_event_ = events_;
    peak_time_ = time;
  }
  tell({record->first, bytes, live_, false, makers_[maker]});
}

void MemoryLog::end(Records::iterator record, uint64_t time) {
  Record& it = record->second;
  if (it.end != UINT64_MAX) return;
  begin(record, time);  // if the report of its alloca is late
  live_ -= it.bytes;
  it.end = ++events_;
  tell({record->first, it.bytes, live_, true, makers_[it.maker]});
  // Made after the peak and gone: part of no peak.
  if (it.begin > peak_event_) records_.erase(record);
  add_point(time);
}

uint64_t MemoryLog::allocated(uint64_t bytes, std::string_view maker, uint64_t time) {
  const std::lock_guard lock(mutex_);
  const auto record = add_record(bytes, maker);
  begin(record, time);
  return record->first;
}

// Nothing of the allocation is under way any more.
void MemoryLog::freed(uint64_t number, uint64_t time) {
  const std::lock_guard lock(mutex_);
  std::erase_if(pending_operations_, [&](const auto& each) { return each.second.allocation == number; });
  const auto record = records_.find(number);
  if (record == records_.end()) return;
  if (record->second.begin == 0)
    records_.erase(record);
  else
    end(record, time);
}

uint64_t MemoryLog::queue_alloca(uint64_t bytes, std::string_view maker, QueuedMemory operation) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = add_record(bytes, maker)->first;
  pending_operations_.emplace(++requests_, Pending{number, false, std::move(operation)});
  return number;
}

void MemoryLog::queue_dealloca(uint64_t number, QueuedMemory operation) {
  const std::lock_guard lock(mutex_);
  pending_operations_.emplace(++requests_, Pending{number, true, std::move(operation)});
}

bool MemoryLog::Pending::must_follow(const Pending& other) const {
  return operation.must_follow(other.operation) ||
         (is_end && !other.is_end && allocation == other.allocation);
}

// Applies the operations that have signalled, but whose reports are later than that of `from`: those that it
// has waited for, and those that were requested before it and have not waited for it; each after those that
// it has waited for.
void MemoryLog::apply_done(const Pending& from, uint64_t request, uint64_t time) {
  struct Signalled {
    uint64_t request;
    Pending pending;
    bool is_before = false;  // `from` has waited for it
    bool is_after = false;   // it has waited for `from`
  };
  std::vector<Signalled> signalled;
  for (const auto& [number, pending] : pending_operations_)
    if (pending.operation.is_done && pending.operation.is_done()) signalled.push_back({number, pending});
  // An operation between two that have signalled has signalled, too.
  const auto mark = [&](bool Signalled::* marked, auto&& is_next) {
    std::vector<const Pending*> open = {&from};
    while (!open.empty()) {
      const Pending& current = *open.back();
      open.pop_back();
      for (Signalled& it : signalled)
        if (!(it.*marked) && is_next(it.pending, current)) {
          it.*marked = true;
          open.push_back(&it.pending);
        }
    }
  };
  mark(&Signalled::is_after,
       [](const Pending& it, const Pending& current) { return it.must_follow(current); });
  mark(&Signalled::is_before,
       [](const Pending& it, const Pending& current) { return current.must_follow(it); });
  std::erase_if(signalled,
                [&](const Signalled& it) { return it.is_after || (!it.is_before && it.request > request); });
  while (!signalled.empty()) {
    auto next = std::ranges::find_if(signalled, [&](const Signalled& it) {
      return std::ranges::none_of(signalled, [&](const Signalled& other) {
        return &other != &it && it.pending.must_follow(other.pending);
      });
    });
    if (next == signalled.end()) next = signalled.begin();
    if (const auto record = records_.find(next->pending.allocation); record != records_.end())
      apply(record, next->pending.is_end, time);
    pending_operations_.erase(next->request);
    signalled.erase(next);
  }
}

void MemoryLog::apply(Records::iterator record, bool is_end, uint64_t time) {
  if (is_end)
    end(record, time);
  else
    begin(record, time);
}

void MemoryLog::alloca_done(uint64_t number, bool has_run, uint64_t time) {
  operation_done(number, false, has_run, time);
}
void MemoryLog::dealloca_done(uint64_t number, bool has_run, uint64_t time) {
  operation_done(number, true, has_run, time);
}

void MemoryLog::operation_done(uint64_t number, bool is_end, bool has_run, uint64_t time) {
  const std::lock_guard lock(mutex_);
  const auto pending = std::ranges::find_if(pending_operations_, [&](const auto& each) {
    return each.second.allocation == number && each.second.is_end == is_end;
  });
  if (pending == pending_operations_.end()) return;
  const auto [request, operation] = *pending;
  pending_operations_.erase(pending);
  if (!has_run) return;
  apply_done(operation, request, time);
  if (const auto record = records_.find(number); record != records_.end()) apply(record, is_end, time);
}

void MemoryLog::tell(const Change& change) const {
  if (observer_) observer_(change);
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
    if (record.begin != 0 && record.begin <= peak_event_ && record.end > peak_event_)
      ++counts[{record.maker, record.bytes}];
  std::multimap<uint64_t, Alive, std::greater<>> largest_first;
  for (const auto& [key, count] : counts)
    largest_first.emplace(key.second * count, Alive{key.second, count, std::string(makers_[key.first])});
  for (auto& [bytes, alive] : largest_first) report.alive.push_back(std::move(alive));
  return report;
}

}  // namespace halyard::hal
