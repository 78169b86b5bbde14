// Selects the requests that are recorded in the trace, and writes their slices.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "metrics.h"

namespace halyard::tools::serve {

// The header `traceparent` of W3C Trace Context.
struct TraceParent {
  std::string_view trace_id;  // 32 hexadecimal digits
  bool is_sampled = false;
};
// Nothing if it is malformed; it is then ignored.
std::optional<TraceParent> parse_trace_parent(std::string_view text);

// The times of a recorded request.
struct RequestTimes {
  std::string name;  // "mul/1", with the trace id of the client if there is one
  Clock::time_point begin, queued, called, returned, end;
};

// Any thread.
class RequestTraces {
 public:
  // `trace` empty: no request is recorded. `rate` nullopt: every request. `rate` N: one of N requests (0:
  // none), and all requests that a client has marked as sampled.
  RequestTraces(Trace trace, std::optional<uint64_t> rate) : trace_(std::move(trace)), rate_(rate) {}

  bool is_on() const { return static_cast<bool>(trace_); }
  // Whether some requests are not recorded, so that each call must be marked as recorded or not.
  bool chooses() const { return is_on() && rate_.has_value(); }
  // Whether to record a request with this `traceparent` header. Counts recorded requests.
  bool samples(const std::optional<TraceParent>& parent);
  // Records a completed request.
  void add(const RequestTimes& times);
  // Writes the events since the last flush to the file.
  void flush();

 private:
  // Slices of one track must not overlap, so concurrent requests have different tracks.
  struct Lane {
    Trace::Track track;
    Clock::time_point end;  // of the last slice
  };
  static constexpr size_t kMaxLanes = 64;
  Trace::Track track_of(const RequestTimes& times);

  const Trace trace_;
  const std::optional<uint64_t> rate_;
  std::atomic<uint64_t> seen_ = 0;  // number of requests without the header
  std::atomic<bool> has_new_ = false;
  std::mutex mutex_;
  std::vector<Lane> lanes_;
};

}  // namespace halyard::tools::serve
