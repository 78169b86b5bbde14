// InFlight: one submission, from queue_submit until its completion.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "halyard/driver.hpp"
#include "timeline.h"

namespace halyard::remote {

// Where the host has the commands of a recording.
using CommandAddresses = std::vector<const void*>;

class InFlight {
 public:
  explicit InFlight(uint64_t number, const halyard_submission_t& submission)
      : number_(number),
        signals_(submission.signals, submission.signals + submission.signal_count),
        completed_(submission.completed),
        completed_user_(submission.completed_user),
        stop_(submission) {}

  uint64_t number() const { return number_; }
  void* user() const { return completed_user_; }
  const kit::Stop& stop() const { return stop_; }
  std::vector<std::shared_ptr<Forward>> forwards;
  std::function<void()> on_success;            // before the signals
  bool computes = false;                       // more than memory and signals
  const CommandAddresses* commands = nullptr;  // of the recording that it executes; lives as long
  // The address of a command by its number, from 1; null: there is none.
  const void* command(uint32_t number) const {
    return commands && number > 0 && number <= commands->size() ? (*commands)[number - 1] : nullptr;
  }

  // Makes the signals. Returns the call that lets the host know, which frees the work.
  static kit::Task& complete(std::unique_ptr<InFlight> work, const SemaphoreServer& from, kit::Status failure,
                             kit::TaskList& ready) {
    for (const std::shared_ptr<Forward>& forward : work->forwards) forward->end();
    if (!failure && work->on_success) work->on_success();
    for (const halyard_timepoint_t& point : work->signals_) {
      auto& semaphore = kit::timeline_of<Semaphore>(point);
      if (failure) {
        semaphore.fail_by(from, failure, ready);
      } else {
        semaphore.advance_by(from, point.value, ready);
      }
    }
    work->call_.failure = std::move(failure);
    work->call_.work = work.get();
    work->call_.run = [](kit::Task& task, kit::TaskList&) {
      auto& call = static_cast<Call&>(task);
      const std::unique_ptr<InFlight> owned(call.work);
      owned->completed_(owned->completed_user_, std::move(call.failure).release());
    };
    return work.release()->call_;
  }

 private:
  struct Call : kit::Task {
    InFlight* work = nullptr;
    kit::Status failure;
  };

  const uint64_t number_;
  const std::vector<halyard_timepoint_t> signals_;
  const halyard_completed_fn completed_;
  void* const completed_user_;
  const kit::Stop stop_;
  Call call_;
};

}  // namespace halyard::remote
