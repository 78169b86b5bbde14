// Formats metrics.
#include "metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "prometheus.h"

namespace halyard::tools::serve {

void Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  counts_[static_cast<size_t>(bound - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

void Histogram::append_to(std::string& text, std::string_view name, std::string_view labels) const {
  const std::string_view comma = labels.empty() ? "" : ",";
  uint64_t total = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    total += counts_[i].load(std::memory_order_relaxed);
    fmt::format_to(std::back_inserter(text), "{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma,
                   bounds_[i], total);
  }
  total += counts_[bounds_.size()].load(std::memory_order_relaxed);
  fmt::format_to(std::back_inserter(text), "{}_bucket{{{}{}le=\"+Inf\"}} {}\n", name, labels, comma, total);
  append_value(text, fmt::format("{}_sum", name), labels, sum_.load(std::memory_order_relaxed));
  append_value(text, fmt::format("{}_count", name), labels, total);
}

void Metrics::count_response(unsigned status) {
  responses_[std::min<size_t>(status, kStatuses - 1)].fetch_add(1, std::memory_order_relaxed);
}

void Metrics::count_grpc_response(int code) {
  grpc_responses_[std::min(static_cast<size_t>(code), kGrpcCodes - 1)].fetch_add(1,
                                                                                 std::memory_order_relaxed);
}

std::shared_ptr<ModelMetrics> Metrics::of_model(const std::string& name, const std::string& version) {
  const std::lock_guard lock(mutex_);
  auto& metrics = models_[{name, version}];
  if (!metrics) metrics = std::make_shared<ModelMetrics>();
  return metrics;
}

std::string Metrics::text(std::span<const DeviceMemory> devices) const {
  std::string text;
  const auto single = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    append_metric(text, name, type, help, value);
  };
  single("halyard_connections", "gauge", "Open connections.", connections.load());
  single("halyard_connections_accepted_total", "counter", "Accepted connections.", accepted.load());
  single("halyard_connections_refused_total", "counter",
         "Connections that were closed because the limit was reached.", refused_connections.load());
  single("halyard_request_memory_bytes", "gauge", "Bytes reserved for requests that are being read or run.",
         request_bytes.load());
  single("halyard_reloads_total", "counter", "Repeated searches for models.", reloads.load());
  single("halyard_reload_failures_total", "counter", "Models that could not be loaded by a repeated search.",
         failed_reloads.load());
  single("halyard_devices_lost_total", "counter", "Lost devices.", lost_devices.load());
  single("halyard_log_lines_dropped_total", "counter",
         "Log lines that were dropped because writing was too slow.", dropped_log_lines.load());

  begin_metric(text, "halyard_responses_total", "counter", "Responses by HTTP status.");
  for (size_t status = 0; status < kStatuses; ++status)
    if (const uint64_t count = responses_[status].load(std::memory_order_relaxed))
      append_value(text, "halyard_responses_total", fmt::format("status=\"{}\"", status), count);

  begin_metric(text, "halyard_grpc_responses_total", "counter", "Responses over gRPC by status code.");
  for (size_t code = 0; code < kGrpcCodes; ++code)
    if (const uint64_t count = grpc_responses_[code].load(std::memory_order_relaxed))
      append_value(text, "halyard_grpc_responses_total",
                   fmt::format("code=\"{}\"", grpc_code_name(static_cast<int>(code))), count);

  if (!devices.empty()) {
    begin_metric(text, "halyard_device_memory_bytes", "gauge", "Memory allocated by a device.");
    for (const DeviceMemory& device : devices) {
      append_value(text, "halyard_device_memory_bytes",
                   fmt::format("device=\"{}\",kind=\"host\"", label(device.uri)), device.host_live);
      append_value(text, "halyard_device_memory_bytes",
                   fmt::format("device=\"{}\",kind=\"device\"", label(device.uri)), device.device_live);
    }
  }

  const std::lock_guard lock(mutex_);
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto&& append) {
    begin_metric(text, name, type, help);
    for (const auto& [key, metrics] : models_)
      append(*metrics, fmt::format("model=\"{}\",version=\"{}\"", label(key.first), label(key.second)));
  };
  each("halyard_model_requests_total", "counter", "Inference requests by outcome.",
       [&](const ModelMetrics& metrics, const std::string& labels) {
         const std::pair<std::string_view, uint64_t> outcomes[] = {{"success", metrics.succeeded.load()},
                                                                   {"failure", metrics.failed.load()},
                                                                   {"rejected", metrics.rejected.load()},
                                                                   {"timeout", metrics.timed_out.load()},
                                                                   {"cancelled", metrics.cancelled.load()}};
         for (const auto& [outcome, count] : outcomes)
           append_value(text, "halyard_model_requests_total",
                        fmt::format("{},outcome=\"{}\"", labels, outcome), count);
       });
  const auto gauge = [&](std::string_view name, std::string_view help,
                         std::atomic<int64_t> ModelMetrics::* member) {
    each(name, "gauge", help, [&](const ModelMetrics& metrics, const std::string& labels) {
      append_value(text, name, labels, (metrics.*member).load());
    });
  };
  gauge("halyard_model_queue_length", "Requests waiting for a context.", &ModelMetrics::queued);
  gauge("halyard_model_calls", "Running calls.", &ModelMetrics::running);
  gauge("halyard_model_contexts", "Contexts of the model.", &ModelMetrics::contexts);
  const auto histogram = [&](std::string_view name, std::string_view help, Histogram ModelMetrics::* member) {
    each(name, "histogram", help, [&](const ModelMetrics& metrics, const std::string& labels) {
      (metrics.*member).append_to(text, name, labels);
    });
  };
  histogram("halyard_model_request_seconds", "Time from a request's header to its response.",
            &ModelMetrics::request_seconds);
  histogram("halyard_model_queue_seconds", "Time for which requests waited for a context.",
            &ModelMetrics::queue_seconds);
  histogram("halyard_model_call_seconds", "Time of the calls.", &ModelMetrics::call_seconds);
  histogram("halyard_model_batch_rows", "Rows of calls of batched models.", &ModelMetrics::batch_rows);
  return text;
}

}  // namespace halyard::tools::serve
