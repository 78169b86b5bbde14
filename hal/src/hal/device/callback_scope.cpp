// A thread-local counter of the nested callbacks from drivers.
#include "hal/device/callback_scope.h"

#include "base/thread_local.h"

namespace halyard::hal {

namespace {
HALYARD_SMALL_THREAD_LOCAL thread_local int depth = 0;
}

CallbackScope::CallbackScope() { ++depth; }
CallbackScope::~CallbackScope() { --depth; }

void outside_of_callbacks(Loop& loop, Step& step) noexcept {
  if (depth == 0) return step.run(step);
  loop.post(step);
}

void await_outside_of_callbacks(Loop& loop) {
  if (depth == 0) loop.drain();
}

}  // namespace halyard::hal
