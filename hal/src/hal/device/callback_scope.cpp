// Thread-local state: the depth of callbacks from drivers, and the steps that wait for the running step.
#include "hal/device/callback_scope.h"

#include "base/thread_local.h"

namespace halyard::hal {

namespace {
HALYARD_SMALL_THREAD_LOCAL thread_local int depth = 0;
}

CallbackScope::CallbackScope() { ++depth; }
CallbackScope::~CallbackScope() { --depth; }

void run_step(Step& step) noexcept {
  struct Queue {
    bool is_running = false;
    Step* first = nullptr;
    Step* last = nullptr;
  };
  HALYARD_SMALL_THREAD_LOCAL static thread_local Queue queue;
  step.next = nullptr;
  (queue.first ? queue.last->next : queue.first) = &step;
  queue.last = &step;
  if (queue.is_running) return;
  queue.is_running = true;
  while (Step* next = queue.first) {
    queue.first = next->next;
    next->run(*next);
  }
  queue.is_running = false;
}

void outside_of_callbacks(Loop& loop, Step& step) noexcept {
  if (depth == 0) return step.run(step);
  loop.post(step);
}

bool is_in_callback() noexcept { return depth != 0; }

void await_outside_of_callbacks(Loop& loop) {
  if (depth == 0) loop.drain();
}

}  // namespace halyard::hal
