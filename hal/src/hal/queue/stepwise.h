// StepwiseExecution: executes queue work, mostly a command buffer, as a chain of steps. Each step begins when
// the fence of the previous step is reached; no thread is blocked meanwhile. The program sees one submission,
// which signals at the end.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "base/c_boundary.h"
#include "hal/command/command_buffer.h"
#include "hal/queue/bridge.h"
#include "hal/queue/queue_point.h"
#include "hal/queue/wait.h"

namespace halyard::hal {

struct StepwiseExecution {
  Ref<Device> device;
  uint64_t affinity = kAnyQueue;
  Ref<Fence> signal;
  Ref<WorkScope> scope;
  Ref<CommandBuffer> commands;  // retains the objects of its list; null for other work

  // Called once, at the end.
  void finish(Status status) {
    release_resources();
    make_signals(signal.get(), *device, HostSignals::all, status);
    result_ = std::move(status);
    is_finished_.store(true, std::memory_order_release);
  }

  // Runs a step; a failure of the step ends the work. Steps run in callbacks of drivers, so nothing may
  // throw.
  template <typename Step>
  void attempt(Step&& step) {
    if (Status status = Status::adopt(guarded(std::forward<Step>(step))); !status.ok())
      finish(std::move(status));
  }

  // Runs `next` when the fence (may be null) is reached; a failure of the fence ends the work. The wait
  // retains `self`, which is this execution.
  Result<> when(const Fence* fence, Ref<Object> self, std::move_only_function<Result<>()> next) {
    return when_reached(fence, [this, self = std::move(self), next = std::move(next)](Status status) mutable {
      if (!status.ok()) return finish(std::move(status));
      attempt(std::move(next));
    });
  }

  // Returned to the submitter: on devices that run in their caller, the result of completed work.
  Result<> result_for_submitter() const {
    const bool runs_in_caller = device->properties().capabilities & HALYARD_DEVICE_RUNS_IN_CALLER;
    if (!runs_in_caller || !is_finished_.load(std::memory_order_acquire)) return {};
    return to_result(result_);
  }

 protected:
  // Releases objects that the program expects to be free once its signals are made.
  virtual void release_resources() {}

  ~StepwiseExecution() = default;
  explicit StepwiseExecution(const QueuePoint& point)
      : device(Ref<Device>::share(&point.device)),
        affinity(point.affinity),
        signal(Ref<Fence>::share(point.signal)),
        scope(Ref<WorkScope>::share(point.scope)) {}
  StepwiseExecution(const QueuePoint& point, CommandBuffer& executed) : StepwiseExecution(point) {
    commands = Ref<CommandBuffer>::share(&executed);
  }

 private:
  Status result_;
  std::atomic<bool> is_finished_ = false;
};

}  // namespace halyard::hal
