// Where a step runs: here, on this thread; after the step that the thread is in; or on the loop, where a
// driver is calling the host on this thread. What drivers forbid meanwhile, closing a device [R31], is left
// to the loop: the last reference to a device may well be that of work which has just completed on a thread
// that closing the device would join.
#pragma once

#include "base/loop.h"

namespace halyard::hal {

// A driver is calling the host.
class CallbackScope {
 public:
  CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  ~CallbackScope();
};

// Runs the step; on a thread that is in one already, after it. Work that alternates between drivers would
// otherwise nest their calls without bound.
void run_step(Step& step) noexcept;
// Runs the step now, or, within a scope, soon and on the loop.
void outside_of_callbacks(Loop& loop, Step& step) noexcept;
// Whether this thread is in a scope.
bool is_in_callback() noexcept;
// Blocks until the loop has run all steps posted so far; no effect within a scope.
void await_outside_of_callbacks(Loop& loop);

}  // namespace halyard::hal
