// Selects where a step runs: at once on this thread, after the step that this thread is running, or on the
// loop if the thread is in a callback of a driver. Drivers forbid closing a device within a callback [R31].
// But work that has just completed may hold the last reference to its device, on a thread that closing the
// device would join. The loop then closes it.
#pragma once

#include "base/loop.h"

namespace halyard::hal {

// Marks the calling thread as being in a callback of a driver.
class CallbackScope {
 public:
  CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  ~CallbackScope();
};

// Runs the step; if the thread is already running a step, after that step. Otherwise work that alternates
// between drivers would nest their calls without bound.
void run_step(Step& step) noexcept;
// Runs the step now or, within a scope, later on the loop.
void outside_of_callbacks(Loop& loop, Step& step) noexcept;
// Whether this thread is in a scope.
bool is_in_callback() noexcept;
// Blocks until the loop has run all steps posted so far. No effect within a scope.
void await_outside_of_callbacks(Loop& loop);

}  // namespace halyard::hal
