// Schedules jobs: a bounded queue for each model, contexts that are created on demand, a limit of concurrent
// calls of all models, and batches.
//
// Calls run on the threads of the io_context. The limit of calls is below the number of threads, so that a
// model that computes or loops does not keep the server from answering other requests.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "job.h"
#include "log.h"
#include "model.h"

namespace halyard::tools::serve {

struct ScheduleLimits {
  size_t calls = 1;     // concurrent calls of all models
  size_t contexts = 1;  // of one model
  size_t queue = 256;   // waiting jobs of one model
  Clock::duration batch_delay{};
};

// Any thread.
class Scheduler {
 public:
  Scheduler(const Runtime& runtime, Log& log, ScheduleLimits limits)
      : runtime_(runtime), log_(log), limits_(limits), timer_(runtime.io) {}

  const ScheduleLimits& limits() const { return limits_; }
  // Whether a job of the model would be refused now.
  bool is_full(const Model& model) const;
  // False: the queue is full, and nothing has changed. Otherwise the job will get an outcome, possibly before
  // this function returns, because a quick call runs here if no other job is waiting. Call it on a thread of
  // the io_context.
  bool submit(const std::shared_ptr<Job>& job);
  // Ends the job with this failure, unless it has ended. Its call is cancelled; the context stays in use
  // until the call has ended.
  void abandon(const std::shared_ptr<Job>& job, Failure why);
  // Adds a worker that was created before any job.
  void add_worker(Model& model, std::unique_ptr<Worker> worker);

 private:
  using Jobs = std::vector<std::shared_ptr<Job>>;
  struct Start {
    std::shared_ptr<Model> model;
    std::unique_ptr<Worker> worker;  // null: to be created
    Jobs jobs;
    bool is_here = false;  // runs in submit()
    uint64_t rows = 0;     // of all jobs; 1 without batches
    CallTimes times;
  };

  void enqueue(const std::shared_ptr<Job>& job);                     // under the mutex
  std::optional<Start> start_here(const std::shared_ptr<Job>& job);  // under the mutex
  void mark_running(Start& start);                                   // under the mutex
  std::vector<Start> choose();                                       // under the mutex
  Jobs take_jobs(Model& model);
  void pump();
  void launch(Start start);
  void run(Start start);
  void call(const std::shared_ptr<Start>& start, std::vector<halyard::Value> arguments);
  // Called after a failure: checks whether the model's device is lost.
  void check_device(const Model& model, const Failure& failure);
  void finish(Start& start, std::optional<Failure> failure, Clock::duration time);
  void run_apart(Start& start);
  void give_back(Start& start, bool is_usable);
  void end(const std::shared_ptr<Job>& job, std::optional<Failure> failure,
           std::vector<halyard::Value> results, const CallTimes& times = {});
  void set_timer();

  const Runtime& runtime_;
  Log& log_;
  const ScheduleLimits limits_;
  mutable std::mutex mutex_;
  size_t running_ = 0;
  std::deque<std::shared_ptr<Model>> waiting_;  // models with a queue, round robin
  boost::asio::steady_timer timer_;             // expires when the first batch is due; under the mutex
  Clock::time_point timer_due_ = Clock::time_point::max();
};

}  // namespace halyard::tools::serve
