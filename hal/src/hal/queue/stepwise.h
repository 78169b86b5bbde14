// StepwiseExecution: the execution of a command buffer as a chain of steps, each begun when the fence of the
// one before is reached, which holds no thread meanwhile. The program sees one submission: its signals are
// made at the end.
#pragma once

#include <thread>
#include <utility>

#include "base/c_boundary.h"
#include "hal/queue/bridge.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

struct StepwiseExecution {
  Ref<Device> device;
  uint64_t affinity = kAnyQueue;
  Ref<Fence> signal;
  Ref<WorkScope> scope;
  Ref<CommandBuffer> commands;  // keeps what its list borrows

  // For the submitter, if all was done within its call and on its thread: anything else would depend on
  // timing.
  std::thread::id submitter = std::this_thread::get_id();
  Status result;

  // Once, at the end.
  void finish(Status status) {
    let_go();
    make_signals(signal.get(), *device, Makes::all, status);
    if (std::this_thread::get_id() == submitter) result = std::move(status);
  }

  // Runs a step; its failure ends the work. Steps run in callbacks of drivers, so nothing may be thrown.
  template <typename Step>
  void attempt(Step&& step) {
    if (Status status = Status::adopt(guarded(std::forward<Step>(step))); !status.ok())
      finish(std::move(status));
  }

 protected:
  // Gives back what the program may want to find given back as soon as its signals are made.
  virtual void let_go() {}

  ~StepwiseExecution() = default;
  StepwiseExecution(const QueuePoint& point, CommandBuffer& executed)
      : device(Ref<Device>::share(&point.device)),
        affinity(point.affinity),
        signal(Ref<Fence>::share(point.signal)),
        scope(Ref<WorkScope>::share(point.scope)),
        commands(Ref<CommandBuffer>::share(&executed)) {}
};

}  // namespace halyard::hal
