// Waits for fences in a call of a native function: a yieldable call is deferred and resumed; otherwise the
// thread blocks. In both cases the time limit or the cancellation of the call ends the wait.
#pragma once

#include <span>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/queue/wait.h"
#include "vm/native/bind.h"

namespace halyard::modules {

// Waits until all fences are reached, one has failed, or the deadline has passed; the caller checks which.
// True: the call is deferred, and the caller must keep `watch` until it resumes. CANCELLED,
// DEADLINE_EXCEEDED: the call was stopped. RESOURCE_EXHAUSTED: the wait exceeds the limit of `memory` (may be
// null).
inline Result<bool> wait_for(vm::CallContext& call, std::span<hal::Fence* const> fences,
                             const vm::Deadline& deadline, Budget* memory, Ref<Object>& watch) {
  watch = {};  // drop the watch of the previous attempt
  if (call.may_defer()) {
    watch = HALYARD_TRY(hal::watch(fences, call.wait(deadline), memory));
    return true;
  }
  const Ref<Object> here = HALYARD_TRY(hal::watch(fences, call.invocation().begin_wait(deadline), memory));
  HALYARD_TRY(call.invocation().block_on_wait());
  return false;
}

}  // namespace halyard::modules
