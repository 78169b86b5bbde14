// Of the kit (halyard/driver.hpp): reporting to a host that records a trace [R36].
#ifndef HALYARD_DRIVER_TRACE_HPP_
#define HALYARD_DRIVER_TRACE_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "halyard/driver/failure.hpp"

namespace halyard::kit {

using TraceSpanFunction = decltype(Services::trace_span);

// Null: the host records no trace, or predates traces.
inline TraceSpanFunction trace_function(const Services& services) {
  return HALYARD_HAS_FIELD(&services, Services, trace_span) ? services.trace_span : nullptr;
}

// The current time, CLOCK_MONOTONIC in nanoseconds.
inline uint64_t trace_time() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Reports that the waits of a submission are reached and its operation begins. `submission` is its
// completed_user.
inline void trace_began(const Services& services, void* submission) {
  const TraceSpanFunction tell = trace_function(services);
  if (!tell) [[likely]]
    return;
  halyard_trace_span_t span = {};
  span.struct_size = sizeof span;
  span.kind = HALYARD_SPAN_BEGAN;
  span.begin_ns = trace_time();
  span.submission = submission;
  tell(services.host, &span);
}

// Reports the calling thread's activity during the lifetime of this object.
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
  // For a dispatch: see the fields of halyard_trace_span.
  void set_sharing(uint32_t sharing, uint32_t threads) {
    sharing_ = sharing;
    threads_ = threads;
  }
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
    span.sharing = sharing_;
    span.threads = threads_;
    tell_(services_.host, &span);
  }

 private:
  const Services& services_;
  const TraceSpanFunction tell_;
  const std::string_view name_;
  uint64_t begin_ = 0;
  uint32_t sharing_ = HALYARD_SHARING_UNKNOWN;
  uint32_t threads_ = 0;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_TRACE_HPP_
