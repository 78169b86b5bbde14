// What the device tells a host that records a trace: when an operation began, and what threads did for it.
#pragma once

#include <cstddef>
#include <string_view>

#include "estimate.h"
#include "status.h"

namespace halyard::local {

using TraceSpanFunction = decltype(Services::trace_span);

// Null: the host records none, or is older than that.
inline TraceSpanFunction trace_function(const Services& services) {
  constexpr size_t kNeeded = offsetof(Services, trace_span) + sizeof(TraceSpanFunction);
  return services.struct_size >= kNeeded ? services.trace_span : nullptr;
}

inline uint64_t trace_time() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

// The waits of a submission are reached.
inline void trace_began(const Services& services, void* submission) {
  const TraceSpanFunction tell = trace_function(services);
  if (!tell) return;
  halyard_trace_span_t span = {};
  span.struct_size = sizeof span;
  span.kind = HALYARD_SPAN_BEGAN;
  span.begin_ns = trace_time();
  span.submission = submission;
  tell(services.host, &span);
}

// What this thread does as long as this lives.
class TraceSpan {
 public:
  // `name` must live as long.
  TraceSpan(const Services& services, std::string_view name)
      : services_(services), tell_(trace_function(services)), name_(name) {
    if (tell_) [[unlikely]]
      begin_ = trace_time();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (!tell_) [[likely]]
      return;
    halyard_trace_span_t span = {};
    span.struct_size = sizeof span;
    span.kind = HALYARD_SPAN_THREAD;
    span.begin_ns = begin_;
    span.end_ns = trace_time();
    span.name = name_.data();
    span.name_size = name_.size();
    tell_(services_.host, &span);
  }

 private:
  const Services& services_;
  const TraceSpanFunction tell_;
  const std::string_view name_;
  uint64_t begin_ = 0;
};

}  // namespace halyard::local
