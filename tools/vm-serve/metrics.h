// Counters and histograms, and their text in Prometheus' exposition format, version 0.0.4. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "grpc_status.h"
#include "statistics.h"

namespace halyard::tools::serve {

using Clock = std::chrono::steady_clock;

// Counts the values up to each bound. They are accumulated, as Prometheus requires, when they are printed.
class Histogram {
 public:
  static constexpr size_t kMaxBounds = 16;
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}

  void add(double value);
  void add(Clock::duration time) { add(std::chrono::duration<double>(time).count()); }
  // Appends the lines of the metric `name` with these labels: `model="a"`, or "".
  void append_to(std::string& text, std::string_view name, std::string_view labels) const;

 private:
  const std::span<const double> bounds_;
  std::array<std::atomic<uint64_t>, kMaxBounds + 1> counts_ = {};
  std::atomic<double> sum_ = 0;
};

// The metrics of one version of a model. They are kept when the model is reloaded, because counters must
// never decrease.
struct ModelMetrics {
  static constexpr std::array<double, 16> kSeconds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  static constexpr std::array<double, 10> kRows = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

  std::atomic<uint64_t> succeeded = 0;
  std::atomic<uint64_t> failed = 0;     // by the model, or because of the request
  std::atomic<uint64_t> rejected = 0;   // the queue was full
  std::atomic<uint64_t> timed_out = 0;  // while waiting or running
  std::atomic<uint64_t> cancelled = 0;  // the client has disconnected
  std::atomic<int64_t> queued = 0;
  std::atomic<int64_t> running = 0;
  std::atomic<int64_t> contexts = 0;
  Histogram request_seconds{kSeconds};  // from the end of the header to the response
  Histogram queue_seconds{kSeconds};
  Histogram call_seconds{kSeconds};
  Histogram batch_rows{kRows};  // for calls of batched models
  StatisticsCounter statistics;
};

class Metrics {
 public:
  std::atomic<int64_t> connections = 0;
  std::atomic<uint64_t> accepted = 0;
  std::atomic<uint64_t> refused_connections = 0;  // because there were too many
  std::atomic<int64_t> request_bytes = 0;         // reserved for requests that are being read or run
  std::atomic<uint64_t> reloads = 0;
  std::atomic<uint64_t> failed_reloads = 0;
  std::atomic<uint64_t> lost_devices = 0;
  std::atomic<uint64_t> dropped_log_lines = 0;

  void count_response(unsigned status);  // of HTTP
  void count_grpc_response(int code);
  // Returns the same object for the same name and version.
  std::shared_ptr<ModelMetrics> of_model(const std::string& name, const std::string& version);

  struct DeviceMemory {
    std::string uri;
    uint64_t host_live = 0;
    uint64_t device_live = 0;
  };
  std::string text(std::span<const DeviceMemory> devices) const;

 private:
  static constexpr size_t kStatuses = 600;
  std::array<std::atomic<uint64_t>, kStatuses> responses_ = {};
  std::array<std::atomic<uint64_t>, kGrpcCodes> grpc_responses_ = {};
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<ModelMetrics>> models_;
};

}  // namespace halyard::tools::serve
