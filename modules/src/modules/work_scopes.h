// The work in flight of a context's calls. It may outlive its call, and stops with the context.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "base/work_scope.h"
#include "hal/device/device.h"

namespace halyard::modules {

// Any thread: calls of one context may run at the same time.
class WorkScopes {
 public:
  // Of a call that submits work. A call does so many times in a row, so the last scope is recognised without
  // the lock.
  void remember(WorkScope& scope) {
    if (last_.load(std::memory_order_acquire) != &scope) [[unlikely]]
      add(scope);
  }
  // Stops what is in flight on those of the devices that have no users (hal/device/device.h).
  void stop_on(std::span<const Ref<hal::Device>> devices);

 private:
  void add(WorkScope& scope);

  std::mutex mutex_;
  std::vector<Ref<WorkScope>> scopes_;
  std::atomic<const WorkScope*> last_ = nullptr;  // one of scopes_, while it is set
};

}  // namespace halyard::modules
