// Levels, lifetimes and the writers of ranges.
#include "analysis/timeline.h"

#include <algorithm>
#include <new>
#include <set>

#include "analysis/objects.h"

namespace halyard::analysis {

Memory::~Memory() {
  const std::shared_ptr<Timeline> alive = timeline.lock();
  if (!alive) return;
  try {
    alive->free(allocation);
  } catch (const std::bad_alloc&) {  // the analysis ends with this error elsewhere
  }
}

std::string_view name_of(Origin origin) {
  constexpr std::array<std::string_view, 4> kNames = {"argument", "result", "transient", "state"};
  return kNames[static_cast<size_t>(origin)];
}

std::string_view name_of(Step::Kind kind) {
  constexpr std::array<std::string_view, 8> kNames = {"dispatch", "fill",  "update",     "copy",
                                                      "read",     "write", "collective", "parameters"};
  return kNames[static_cast<size_t>(kind)];
}

uint32_t Timeline::allocate(Allocation allocation) {
  const auto number = static_cast<uint32_t>(allocations_.size());
  if (number >= kMaxAllocations) is_full_ = true;
  allocation.begin = static_cast<uint32_t>(steps_.size());
  ++events_;
  lifetimes_.push_back({events_, UINT32_MAX});
  writers_.emplace_back();
  if (!allocation.in_place) live_ = symbols_.add(live_, allocation.size);
  allocations_.push_back(std::move(allocation));
  consider();
  return number;
}

void Timeline::free(uint32_t allocation) {
  if (is_over_ || lifetimes_[allocation].end != UINT32_MAX) return;
  lifetimes_[allocation].end = ++events_;
  allocations_[allocation].end = static_cast<uint32_t>(steps_.size());
  if (!allocations_[allocation].in_place) live_ = symbols_.subtract(live_, allocations_[allocation].size);
}

void Timeline::begin_call() {
  for (Allocation& allocation : allocations_)
    if (allocation.end == UINT32_MAX) {
      allocation.origin = Origin::state;
      allocation.begin = 0;
    }
  steps_.clear();
  candidates_.clear();
  for (auto& writers : writers_) writers.clear();
  consider();
}

void Timeline::end_call(const std::vector<uint32_t>& results) {
  is_over_ = true;
  for (const uint32_t result : results)
    if (allocations_[result].origin == Origin::transient) allocations_[result].origin = Origin::result;
}

void Timeline::end_initializer() {
  is_over_ = true;
  for (Allocation& allocation : allocations_)
    if (allocation.end == UINT32_MAX) allocation.origin = Origin::state;
}

void Timeline::consider() {
  for (const Candidate& known : candidates_)
    if (symbols_.is_at_least(known.live, live_)) return;
  std::erase_if(candidates_, [&](const Candidate& known) { return symbols_.is_at_least(live_, known.live); });
  if (candidates_.size() >= kMaxPeaks) candidates_.erase(candidates_.begin());
  candidates_.push_back({live_, events_, static_cast<uint32_t>(steps_.size())});
}

std::vector<Peak> Timeline::peaks() const {
  std::vector<Peak> peaks;
  for (const Candidate& candidate : candidates_) {
    Peak peak;
    peak.steps = candidate.steps;
    peak.level.total = candidate.live;
    for (uint32_t i = 0; i < allocations_.size(); ++i) {
      if (lifetimes_[i].begin > candidate.event || lifetimes_[i].end <= candidate.event) continue;
      peak.alive.push_back(i);
      if (allocations_[i].in_place) continue;
      Level& level = peak.level;
      Expression* const sums[] = {&level.arguments, &level.results, &level.transients, &level.state};
      Expression& sum = *sums[static_cast<size_t>(allocations_[i].origin)];
      sum = symbols_.add(sum, allocations_[i].size);
    }
    peaks.push_back(std::move(peak));
  }
  return peaks;
}

bool Timeline::may_overlap(const Expression& offset, const Expression& length, const Writer& writer) {
  return !symbols_.is_at_least(offset, symbols_.add(writer.offset, writer.length)) &&
         !symbols_.is_at_least(writer.offset, symbols_.add(offset, length));
}

// Takes the bytes that a use writes from the ranges of earlier writers. What is left of a range that is an
// expression is known only if nothing is left.
void Timeline::replace(std::vector<Writer>& writers, const Use& use) {
  const auto range_of = [](const Expression& offset,
                           const Expression& length) -> std::optional<std::pair<int64_t, int64_t>> {
    const auto begin = offset.constant();
    const auto size = length.constant();
    int64_t end = 0;
    if (!begin || !size || __builtin_add_overflow(*begin, *size, &end)) return std::nullopt;
    return std::pair(*begin, end);
  };
  const auto now = range_of(use.offset, use.length);
  const Expression end = symbols_.add(use.offset, use.length);
  std::vector<Writer> left;
  for (Writer& writer : writers) {
    const auto before = range_of(writer.offset, writer.length);
    if (now && before) {
      if (now->first >= now->second || before->second <= now->first || before->first >= now->second) {
        left.push_back(std::move(writer));
        continue;
      }
      if (before->first < now->first)
        left.push_back({before->first, now->first - before->first, writer.step});
      if (before->second > now->second)
        left.push_back({now->second, before->second - now->second, writer.step});
    } else if (!symbols_.is_at_least(writer.offset, use.offset) ||
               !symbols_.is_at_least(end, symbols_.add(writer.offset, writer.length))) {
      left.push_back(std::move(writer));
    }
  }
  writers = std::move(left);
}

// A binding whose use is only assumed and whose bytes nothing has written yet, is written: memory of a queue
// alloca begins without contents.
void Timeline::add(Step step) {
  uses_ += step.uses.size();
  if (steps_.size() >= kMaxSteps || uses_ > kMaxUses) {
    is_full_ = true;
    return;
  }
  const auto number = static_cast<uint32_t>(steps_.size());
  std::set<uint32_t> after;
  for (Use& use : step.uses) {
    if (use.allocation == UINT32_MAX) continue;
    bool is_written = false;
    for (const Writer& writer : writers_[use.allocation]) {
      if (!may_overlap(use.offset, use.length, writer)) continue;
      is_written = true;
      if (use.reads) after.insert(writer.step);
    }
    const Allocation& allocation = allocations_[use.allocation];
    const bool begins_empty = allocation.origin == Origin::transient || allocation.origin == Origin::result;
    if (use.is_assumed && begins_empty && !allocation.in_place && !is_written) {
      use.writes = true;
      use.reads = false;
    }
  }
  for (const Use& use : step.uses) {
    if (use.allocation == UINT32_MAX || !use.writes) continue;
    std::vector<Writer>& writers = writers_[use.allocation];
    replace(writers, use);
    if (writers.size() >= kMaxWriters) writers.erase(writers.begin(), writers.begin() + kMaxWriters / 2);
    writers.push_back({use.offset, use.length, number});
  }
  step.after.assign(after.begin(), after.end());
  step.live = live_;
  steps_.push_back(std::move(step));
}

}  // namespace halyard::analysis
