// A job: one inference, from the queue to the end of its call. It has the inputs, the outcome, and a handler
// that is called when the outcome is known.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "budget.h"
#include "common/failure.h"
#include "infer_request.h"
#include "metrics.h"
#include "model.h"

namespace halyard::tools::serve {

struct Job {
  std::shared_ptr<Model> model;
  std::vector<RequestInput> inputs;  // in the order of the model's inputs, with their bytes
  Reservation reservation;           // of the memory for the inputs
  bool is_traced = false;

  // Sets the handler, which is called when the outcome is known, on the thread that sets the outcome; it must
  // not block. False: the outcome is known already, and the handler is not called.
  [[nodiscard]] bool await(std::move_only_function<void()> handler) {
    done_ = std::move(handler);
    Progress expected = Progress::pending;
    if (progress_.compare_exchange_strong(expected, Progress::awaited)) return true;
    done_ = nullptr;  // it may own the job
    return false;
  }
  bool has_outcome() const { return progress_.load() == Progress::over; }
  void set_outcome(std::vector<Value> given, std::optional<Failure> why) {
    results = std::move(given);
    failure = std::move(why);
    if (progress_.exchange(Progress::over) == Progress::awaited) std::exchange(done_, nullptr)();
  }

  // The outcome. Valid once it is known.
  std::vector<Value> results;
  std::optional<Failure> failure;

  Clock::time_point queued_at;
  Clock::duration queue_time{};
  CallTimes call_times;  // of the call that the job was part of

  // Guarded by the scheduler's mutex.
  enum class State { waiting, running, over } state = State::waiting;
  Worker* worker = nullptr;    // runs the job
  bool never_batched = false;  // a batch with this job has failed, so it runs alone

  // The size of the first dimension if it is the same for all inputs, and one of them has elements; else 0.
  uint64_t rows() const;
  // As statistics count them: 1 if the model has no batches or the inputs have no common number of rows.
  uint64_t counted_rows() const { return model->has_batches() ? std::max<uint64_t>(rows(), 1) : 1; }
  // Whether both jobs can run in one call: all dimensions except the first are equal.
  bool fits(const Job& other) const;

 private:
  enum class Progress { pending, awaited, over };
  std::atomic<Progress> progress_ = Progress::pending;
  std::move_only_function<void()> done_;
};

// Creates the arguments of a call, in host memory that the device uses in place if it can. Consumes the bytes
// of the inputs.
Result<std::vector<Value>> arguments_of(const ModelSpec& model, const Device& device,
                                        std::vector<RequestInput>& inputs);

// Concatenates the inputs of jobs that fit, along the first dimension. Copies the inputs.
Result<std::vector<RequestInput>> joined(const ModelSpec& model, std::span<const std::shared_ptr<Job>> jobs);

// The rows of each job, as views of parts of the results, without copies. FAILED_PRECONDITION: a result has
// another number of rows than the arguments.
Result<std::vector<std::vector<Value>>> split(const std::vector<Value>& results,
                                              std::span<const std::shared_ptr<Job>> jobs);

}  // namespace halyard::tools::serve
