// Sums under a mutex, and their JSON.
#include "statistics.h"

#include <fmt/format.h>

#include <iterator>

#include "documents.h"

namespace halyard::tools::serve {

namespace {

uint64_t now() {
  using namespace std::chrono;
  return static_cast<uint64_t>(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

std::string sum_document(const DurationSum& sum) {
  return fmt::format(R"({{"count":{},"ns":{}}})", sum.count, sum.ns);
}

std::string call_members(const CallSums& sums) {
  return fmt::format(R"("compute_input":{},"compute_infer":{},"compute_output":{})", sum_document(sums.input),
                     sum_document(sums.infer), sum_document(sums.output));
}

}  // namespace

void StatisticsCounter::add_call(uint64_t rows, const CallTimes& times) {
  const std::lock_guard lock(mutex_);
  ++sums_.execution_count;
  if (sums_.calls.size() < kMaxSizes || sums_.calls.contains(rows)) sums_.calls[rows].add(times);
}

void StatisticsCounter::add_success(uint64_t rows, std::chrono::nanoseconds total,
                                    std::chrono::nanoseconds queue, const CallTimes& call) {
  const std::lock_guard lock(mutex_);
  sums_.last_inference = now();
  sums_.inference_count += rows;
  sums_.success.add(total);
  sums_.queue.add(queue);
  sums_.requests.add(call);
}

void StatisticsCounter::add_failure(std::chrono::nanoseconds total) {
  const std::lock_guard lock(mutex_);
  sums_.last_inference = now();
  sums_.fail.add(total);
}

Statistics StatisticsCounter::get() const {
  const std::lock_guard lock(mutex_);
  return sums_;
}

std::string statistics_document(std::string_view model, std::string_view version,
                                const Statistics& statistics) {
  std::string text = fmt::format(
      R"({{"name":{},"version":{},"last_inference":{},"inference_count":{},"execution_count":{},)",
      json_string(model), json_string(version), statistics.last_inference, statistics.inference_count,
      statistics.execution_count);
  fmt::format_to(std::back_inserter(text), R"("inference_stats":{{"success":{},"fail":{},"queue":{},{},)",
                 sum_document(statistics.success), sum_document(statistics.fail),
                 sum_document(statistics.queue), call_members(statistics.requests));
  // Triton's clients expect the sums of its cache of responses.
  text += R"("cache_hit":{"count":0,"ns":0},"cache_miss":{"count":0,"ns":0}},"batch_stats":[)";
  for (const auto& [rows, sums] : statistics.calls)
    fmt::format_to(std::back_inserter(text), R"({}{{"batch_size":{},{}}})", text.ends_with('[') ? "" : ",",
                   rows, call_members(sums));
  return text + "]}";
}

}  // namespace halyard::tools::serve
