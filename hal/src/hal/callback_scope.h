// CallbackScope: a driver is calling the host on this thread. What drivers forbid meanwhile, closing a device
// [R31], is left to another thread: the last reference to a device may well be that of work which has just
// completed on a thread that closing the device would join.
#pragma once

#include <functional>

namespace halyard::hal {

class CallbackScope {
 public:
  CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  ~CallbackScope();
};

// Calls it now, or, within a scope, soon and on another thread. It throws nothing.
void outside_of_callbacks(std::function<void()> action);
// Blocks until all that was left to other threads so far is done; no effect within a scope.
void await_outside_of_callbacks();

}  // namespace halyard::hal
