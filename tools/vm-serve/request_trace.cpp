// Samples requests, and adds slices to tracks.
#include "request_trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace halyard::tools::serve {

namespace {

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; later versions may append more.
std::optional<TraceParent> parse_trace_parent(std::string_view text) {
  constexpr size_t kSize = 55;
  if (text.size() < kSize || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), span = text.substr(36, 16),
                         flags = text.substr(53, 2);
  if (!is_hexadecimal(version) || !is_hexadecimal(trace) || !is_hexadecimal(span) || !is_hexadecimal(flags) ||
      version == "ff" || is_zero(trace) || is_zero(span))
    return std::nullopt;
  if (text.size() > kSize && (version == "00" || text[kSize] != '-')) return std::nullopt;
  constexpr std::string_view kOdd = "13579bdf";
  return TraceParent{.trace_id = trace, .is_sampled = kOdd.find(flags[1]) != std::string_view::npos};
}

bool RequestTraces::samples(const std::optional<TraceParent>& parent) {
  if (!is_on()) return false;
  if (!rate_) return true;
  if (parent) return parent->is_sampled;
  return *rate_ != 0 && seen_.fetch_add(1, std::memory_order_relaxed) % *rate_ == 0;
}

Trace::Track RequestTraces::track_of(const RequestTimes& times) {
  const std::lock_guard lock(mutex_);
  auto lane = std::ranges::find_if(lanes_, [&](const Lane& each) { return each.end <= times.begin; });
  if (lane == lanes_.end()) {
    // If more requests are in flight than there are tracks, slices overlap in the last track.
    if (lanes_.size() < kMaxLanes) lanes_.push_back({.track = {trace_, "requests"}, .end = {}});
    lane = lanes_.end() - 1;
  }
  lane->end = std::max(lane->end, times.end);
  return lane->track;
}

void RequestTraces::add(const RequestTimes& times) {
  const Trace::Track track = track_of(times);
  track.span(times.name, times.begin, times.end);
  track.span("read", times.begin, times.queued);
  if (times.called > times.queued) track.span("queue", times.queued, times.called);
  if (times.returned > times.called) track.span("call", times.called, times.returned);
  track.span("answer", std::max(times.returned, times.queued), times.end);
  has_new_.store(true, std::memory_order_relaxed);
}

// Write errors are reported at the end.
void RequestTraces::flush() {
  if (has_new_.exchange(false, std::memory_order_relaxed)) static_cast<void>(trace_.finish());
}

}  // namespace halyard::tools::serve
