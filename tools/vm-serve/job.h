// One inference on its way through queue and call: what it was given, what came of it, and the handler that
// is told.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "budget.h"
#include "common/failure.h"
#include "halyard/halyard.hpp"
#include "infer_request.h"
#include "metrics.h"
#include "model.h"

namespace halyard::tools::serve {

struct Job {
  std::shared_ptr<Model> model;
  std::vector<RequestInput> inputs;  // by their index in the specification, with their bytes
  Reservation reservation;           // of the memory for them
  bool is_traced = false;

  // Lets `handler` be called when there is an outcome, on the thread that has it; it must not block. False:
  // there is one already, and the handler is not called.
  [[nodiscard]] bool await(std::move_only_function<void()> handler) {
    done_ = std::move(handler);
    Progress expected = Progress::pending;
    return progress_.compare_exchange_strong(expected, Progress::awaited);
  }
  bool has_outcome() const { return progress_.load() == Progress::over; }
  void set_outcome(std::vector<halyard::Value> given, std::optional<Failure> why) {
    results = std::move(given);
    failure = std::move(why);
    if (progress_.exchange(Progress::over) == Progress::awaited) std::exchange(done_, nullptr)();
  }

  // The outcome, once there is one.
  std::vector<halyard::Value> results;
  std::optional<Failure> failure;

  Clock::time_point queued_at;
  Clock::duration queue_time{};
  Clock::duration call_time{};

  // Guarded by the scheduler's mutex.
  enum class State { waiting, running, over } state = State::waiting;
  Worker* worker = nullptr;    // that runs it
  bool never_batched = false;  // a batch with it has failed, so it runs alone

  // Rows along the first dimension, if all inputs have the same number of them; else 0.
  uint64_t rows() const;
  // Whether it can run in one call with another one: the same dimensions but the first.
  bool fits(const Job& other) const;

 private:
  enum class Progress { pending, awaited, over };
  std::atomic<Progress> progress_ = Progress::pending;
  std::move_only_function<void()> done_;
};

// The arguments of a call, in host memory that the device uses in place where it can. The bytes of the inputs
// are used up.
Result<std::vector<halyard::Value>> arguments_of(const ModelSpec& model, halyard_device_t device,
                                                 std::vector<RequestInput>& inputs);

// The inputs of several jobs that fit, one behind the other along the first dimension. Theirs stay as they
// are.
Result<std::vector<RequestInput>> joined(const ModelSpec& model, std::span<const std::shared_ptr<Job>> jobs);

// The rows of each job, as views of parts of the results: nothing is copied. FAILED_PRECONDITION: a result
// does not have as many rows as the arguments.
Result<std::vector<std::vector<halyard::Value>>> split(const std::vector<halyard::Value>& results,
                                                       std::span<const std::shared_ptr<Job>> jobs);

}  // namespace halyard::tools::serve
