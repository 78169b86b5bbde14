// The statistics of a version of a model, as Triton's statistics extension defines them: cumulative counts
// and times of requests that have reached the queue, and of calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace halyard::tools::serve {

struct DurationSum {
  uint64_t count = 0;
  uint64_t ns = 0;

  void add(std::chrono::nanoseconds time) {
    ++count;
    ns += static_cast<uint64_t>(time.count());
  }
};

// Parts of a call: creating its arguments, running it, splitting its results.
struct CallTimes {
  std::chrono::nanoseconds input{};
  std::chrono::nanoseconds infer{};
  std::chrono::nanoseconds output{};
};
struct CallSums {
  DurationSum input, infer, output;

  void add(const CallTimes& times) {
    input.add(times.input);
    infer.add(times.infer);
    output.add(times.output);
  }
};

struct Statistics {
  uint64_t last_inference = 0;   // milliseconds since the epoch
  uint64_t inference_count = 0;  // rows of successful requests
  uint64_t execution_count = 0;  // successful calls
  DurationSum success, fail, queue;
  CallSums requests;                   // of successful requests; requests of one batch each count its call
  std::map<uint64_t, CallSums> calls;  // of successful calls, by their rows
};

// Any thread.
class StatisticsCounter {
 public:
  // A client determines the rows of its requests, so only this many sizes are kept apart; the times of calls
  // of further sizes are not in `calls`.
  static constexpr size_t kMaxSizes = 256;

  void add_call(uint64_t rows, const CallTimes& times);
  // `total` is the time from the queue to the result; `rows` is 1 without batches.
  void add_success(uint64_t rows, std::chrono::nanoseconds total, std::chrono::nanoseconds queue,
                   const CallTimes& call);
  void add_failure(std::chrono::nanoseconds total);
  Statistics get() const;

 private:
  mutable std::mutex mutex_;
  Statistics sums_;  // under the mutex
};

// {"name":"m","version":"1","last_inference":...}: an element of "model_stats".
std::string statistics_document(std::string_view model, std::string_view version,
                                const Statistics& statistics);

}  // namespace halyard::tools::serve
