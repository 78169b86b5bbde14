// One version of a model: the loaded module, its inputs and outputs, and contexts for calls.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch_rule.h"
#include "common/program.h"
#include "devices.h"
#include "halyard/asio.hpp"
#include "metrics.h"
#include "request_trace.h"
#include "tensor.h"

namespace halyard::tools::serve {

// The source of a version of a model.
struct ModelSource {
  std::string name;
  std::string version;
  std::string file;
  std::string function;                 // "": the only function
  std::vector<std::string> parameters;  // "[SCOPE=]FILE"
  uint64_t batch = 0;                   // maximum rows of a batch; 0 and 1: no batches
  bool needs_batches = false;  // the number of rows was given for this model, so it must support them
  bool is_named = false;       // by a flag, so the server does not start unless it loads

  bool operator==(const ModelSource&) const = default;
};

// Shared by all models.
struct Runtime {
  const Flags& flags;
  Program& program;  // has the instance
  Metrics& metrics;
  RequestTraces& traces;
  boost::asio::io_context& io;            // its threads run the calls
  std::chrono::nanoseconds longest_call;  // limit for initializers; other calls have their own limit
};

// Why requests of a model cannot be joined to batches: the first tensor whose first dimension is not dynamic;
// "" if there is none.
std::string why_no_batches(const ModelSpec& model);
inline constexpr std::string_view kExpectedForBatches =
    "expected a dynamic first dimension of every input and output, such as tensor<?x16xf32>";

using AsyncCall = BasicAsyncCall<boost::asio::io_context::executor_type>;

// Counts a context in the metrics of its model as long as it exists.
class ContextCount {
 public:
  explicit ContextCount(std::shared_ptr<ModelMetrics> metrics) : metrics_(std::move(metrics)) {
    metrics_->contexts.fetch_add(1, std::memory_order_relaxed);
  }
  ContextCount(ContextCount&&) = default;
  ContextCount& operator=(ContextCount&&) = delete;
  ~ContextCount() {
    if (metrics_) metrics_->contexts.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<ModelMetrics> metrics_;
};

// A context, and the objects for calling the model's function in it. One call at a time.
struct Worker {
  ContextCount count;
  Context context;
  Function function;
  AsyncCall call;
  std::vector<Value> results;
  Fence signal;          // of the current call, if the function is asynchronous
  size_t live_jobs = 0;  // not abandoned jobs of the current call; guarded by the scheduler's mutex
};

struct Job;

class Model {
 public:
  // Loads the module and reads the signature. INVALID_ARGUMENT: several functions and none chosen; or an
  // argument or result is not a tensor or number with a type of the protocol.
  static Result<std::shared_ptr<Model>> load(const Runtime& runtime, const ModelSource& source);

  const ModelSpec& spec() const { return spec_; }
  const ModelSource& source() const { return source_; }
  ModelMetrics& metrics() const { return *metrics_; }
  const Module& module() const { return module_; }
  bool is_async() const { return is_async_; }
  // Whether batches are enabled and the first dimension of every argument and result is dynamic.
  // INVALID_ARGUMENT: the source needs batches, which the function does not support.
  Result<> check_batches() const;
  bool has_batches() const { return has_batches_.load(std::memory_order_relaxed); }
  void stop_batches() { has_batches_.store(false, std::memory_order_relaxed); }

  // Creates the options of contexts. Call it after the devices have been opened.
  Result<> prepare(const Runtime& runtime, std::shared_ptr<Devices> devices);
  Devices& devices() const { return *devices_; }  // after prepare()
  // The device for arguments; empty: host memory, for programs without devices.
  Device device() const { return needs_devices_ ? devices_->program().device() : Device(); }
  // If true, calls fail until the model is loaded again on another device.
  bool has_lost_device() const { return needs_devices_ && devices_ && devices_->is_lost(); }
  // Creates a context, which runs the module's initializers and may take long. Any thread.
  Result<std::unique_ptr<Worker>> make_worker(const Runtime& runtime) const;

  // Whether recent calls took less time than passing a call to another thread. Any thread; `time` is that of
  // the last call.
  bool is_quick() const { return mean_time() < kQuick; }
  std::chrono::nanoseconds mean_time() const {
    return std::chrono::nanoseconds(mean_ns_.load(std::memory_order_relaxed));
  }
  void count_time(Clock::duration time) {
    const int64_t ns = std::chrono::nanoseconds(time).count(),
                  mean = mean_ns_.load(std::memory_order_relaxed);
    mean_ns_.store(mean + (ns - mean) / 8, std::memory_order_relaxed);
  }

  // Whether it can be called: the last attempt to create a context succeeded, and its device is not lost.
  bool is_ready() const { return has_contexts && !has_lost_device(); }
  // False after a failure to create a context, until one is created.
  std::atomic<bool> has_contexts = false;

  // Guarded by the scheduler's mutex.
  struct Schedule {
    std::vector<std::unique_ptr<Worker>> idle;
    size_t workers = 0;  // idle, running, and being created
    std::deque<std::shared_ptr<Job>> queue;
    uint64_t queued_rows = 0;
    uint64_t running_rows = 0;
    BatchRule rule;
    bool is_listed = false;  // in the list of models with a queue
    std::optional<Clock::time_point> batch_due;
  } schedule;

 private:
  static constexpr std::chrono::nanoseconds kQuick = std::chrono::microseconds(100);

  Model() = default;
  Result<> read_signature();

  ModelSource source_;
  ModelSpec spec_;
  Module module_;
  std::shared_ptr<Devices> devices_;
  bool needs_devices_ = false;
  ContextOptions options_;
  std::shared_ptr<ModelMetrics> metrics_;
  std::string function_;
  uint32_t function_index_ = 0;
  bool is_async_ = false;
  std::atomic<bool> has_batches_ = false;
  std::atomic<int64_t> mean_ns_ = 10 * kQuick.count();  // mean time of recent calls; initially long
};

}  // namespace halyard::tools::serve
