// Which requests are recorded in the trace, and their slices.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "metrics.h"

namespace halyard::tools::serve {

// The header `traceparent` of W3C Trace Context.
struct TraceParent {
  std::string_view trace_id;  // 32 hexadecimal digits
  bool is_sampled = false;
};
// Nothing if it is malformed, which counts as if there were none.
std::optional<TraceParent> parse_trace_parent(std::string_view text);

// When a recorded request did what.
struct RequestTimes {
  std::string name;  // "mul/1", with the trace's id if the client has given one
  Clock::time_point begin, queued, called, returned, end;
};

// Any thread.
class RequestTraces {
 public:
  // `trace` null: no request is recorded. `rate` N: one of N requests, 0: none, and instead those that a
  // client has marked as sampled; without it, every one.
  RequestTraces(halyard_trace_t trace, std::optional<uint64_t> rate) : trace_(trace), rate_(rate) {}

  bool is_on() const { return trace_ != nullptr; }
  // Whether some requests are left out, so that their calls must be told.
  bool chooses() const { return is_on() && rate_.has_value(); }
  // Whether to record a request with this header `traceparent`, "" for none. Sampled ones are counted.
  bool samples(const std::optional<TraceParent>& parent);
  // Records one that is over.
  void add(const RequestTimes& times);
  // Writes to the file what was recorded since the last time.
  void flush();

 private:
  // Slices of one track must not overlap: requests that do have tracks of their own.
  struct Lane {
    uint64_t track;
    Clock::time_point end;  // of its last slice
  };
  static constexpr size_t kMostLanes = 64;
  uint64_t lane_of(const RequestTimes& times);

  const halyard_trace_t trace_;
  const std::optional<uint64_t> rate_;
  std::atomic<uint64_t> seen_ = 0;  // requests without the header
  std::atomic<bool> has_new_ = false;
  std::mutex mutex_;
  std::vector<Lane> lanes_;
};

}  // namespace halyard::tools::serve
