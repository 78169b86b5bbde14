// CallbackScope: marks that a driver is calling the host on this thread. Meanwhile no device may be closed
// [R31]: its last reference may belong to work that has just completed on a thread that closing would join.
// The loop then closes it.
#pragma once

#include "base/loop.h"

namespace halyard::hal {

class CallbackScope {
 public:
  CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  ~CallbackScope();
};

// Runs the step now or, within a scope, soon on the loop.
void outside_of_callbacks(Loop& loop, Step& step) noexcept;
// Blocks until the loop has run all steps posted so far; no effect within a scope.
void await_outside_of_callbacks(Loop& loop);

}  // namespace halyard::hal
