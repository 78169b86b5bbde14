// How a call of a native function waits for fences: it gives its thread back where it can be deferred, and is
// called again; otherwise the thread sits it out. Either way the time limit of the call, or cancelling it,
// ends the wait.
#pragma once

#include <span>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/queue/wait.h"
#include "vm/native/bind.h"

namespace halyard::modules {

// Until all fences are reached, one has failed, or the deadline has come; which, the caller looks at. True:
// the call is deferred, and `watch` is to be kept until it resumes. CANCELLED, DEADLINE_EXCEEDED: the call
// was stopped; RESOURCE_EXHAUSTED: the wait passes the limit of `memory` (may be null).
inline Result<bool> wait_for(vm::CallContext& call, std::span<hal::Fence* const> fences,
                             const vm::Deadline& deadline, Budget* memory, Ref<Object>& watch) {
  watch = {};  // of the attempt before
  if (call.may_defer()) {
    watch = HALYARD_TRY(hal::watch(fences, call.wait(deadline), memory));
    return true;
  }
  const Ref<Object> here = HALYARD_TRY(hal::watch(fences, call.invocation().begin_wait(deadline), memory));
  HALYARD_TRY(call.invocation().sit_out_wait());
  return false;
}

}  // namespace halyard::modules
