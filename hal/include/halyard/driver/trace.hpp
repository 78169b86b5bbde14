// Of the kit (halyard/driver.hpp): reporting to a host that records a trace [R36].
#ifndef HALYARD_DRIVER_TRACE_HPP_
#define HALYARD_DRIVER_TRACE_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
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

// Facts about a dispatch: see the fields of halyard_trace_span. Texts must live as long as the span.
struct TraceDispatch {
  uint64_t workgroups = 0;  // of the whole dispatch
  uint64_t operations = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint32_t known = 0;
  uint32_t code = HALYARD_CODE_UNKNOWN;
  std::string_view reason = {};
  std::string_view uncounted = {};
  std::string_view source = {};
  void* submission = nullptr;     // its completed_user
  const void* command = nullptr;  // of the executed list
};

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
  bool is_traced() const { return tell_ != nullptr; }
  // The span is (a part of) this dispatch. The object must live as long as the span. add_workgroups() adds up
  // the size of the part.
  void set_dispatch(const std::optional<TraceDispatch>& dispatch) {
    dispatch_ = dispatch ? &*dispatch : nullptr;
  }
  // Of a command that is no dispatch.
  void set_command(void* submission, const void* command) {
    submission_ = submission;
    command_ = command;
  }
  void add_workgroups(uint64_t count) { workgroups_ += count; }
  void add_checked_loops(uint64_t count) { checked_loops_ += count; }
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
    span.workgroups = workgroups_;
    span.checked_loops = checked_loops_;
    const TraceDispatch dispatch = dispatch_ ? *dispatch_ : TraceDispatch();
    span.dispatch_workgroups = dispatch.workgroups;
    span.operations = dispatch.operations;
    span.bytes_read = dispatch.bytes_read;
    span.bytes_written = dispatch.bytes_written;
    span.known = dispatch.known;
    span.code = dispatch.code;
    span.reason = dispatch.reason.data();
    span.reason_size = dispatch.reason.size();
    span.uncounted = dispatch.uncounted.data();
    span.uncounted_size = dispatch.uncounted.size();
    span.source = dispatch.source.data();
    span.source_size = dispatch.source.size();
    span.submission = dispatch.submission ? dispatch.submission : submission_;
    span.command = dispatch.command ? dispatch.command : command_;
    tell_(services_.host, &span);
  }

 private:
  const Services& services_;
  const TraceSpanFunction tell_;
  const std::string_view name_;
  uint64_t begin_ = 0;
  uint32_t sharing_ = HALYARD_SHARING_UNKNOWN;
  uint32_t threads_ = 0;
  const TraceDispatch* dispatch_ = nullptr;
  void* submission_ = nullptr;
  const void* command_ = nullptr;
  uint64_t workgroups_ = 0;
  uint64_t checked_loops_ = 0;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_TRACE_HPP_
