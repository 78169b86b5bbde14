// A counter for each thread, and a thread for each action that has to wait for the end of a callback.
#include "hal/callback_scope.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/thread_local.h"

namespace halyard::hal {

namespace {

HALYARD_SMALL_THREAD_LOCAL thread_local int depth = 0;

// Never destroyed: a thread may still be at work when the process ends.
struct Pending {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
};
Pending& pending() {
  static Pending& instance = *new Pending;
  return instance;
}

void finished() {
  const std::lock_guard lock(pending().mutex);
  --pending().count;
  pending().changed.notify_all();
}

}  // namespace

CallbackScope::CallbackScope() { ++depth; }
CallbackScope::~CallbackScope() { --depth; }

void outside_of_callbacks(std::function<void()> action) {
  if (depth == 0) return action();
  {
    const std::lock_guard lock(pending().mutex);
    ++pending().count;
  }
  try {
    std::thread([action = std::move(action)] {
      action();
      finished();
    }).detach();
  } catch (const std::exception&) {  // no thread: better a device that stays open than a deadlock
    finished();
  }
}

void await_outside_of_callbacks() {
  if (depth != 0) return;
  std::unique_lock lock(pending().mutex);
  pending().changed.wait(lock, [] { return pending().count == 0; });
}

}  // namespace halyard::hal
