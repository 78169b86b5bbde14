// The work in flight of a context's calls. It may outlive its call, but is stopped with the context.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "base/work_scope.h"
#include "hal/device/device.h"

namespace halyard::modules {

// Thread-safe, because calls of one context may run concurrently.
class WorkScopes {
 public:
  // Remembers the scope of a call that submits work. A call submits many times in a row, so the last scope is
  // recognised without the lock.
  void remember(WorkScope& scope) {
    if (last_.load(std::memory_order_acquire) != &scope) [[unlikely]]
      add(scope);
  }
  // Stops the work in flight on those of the devices that have no users (hal/device/device.h).
  void stop_on(std::span<const Ref<hal::Device>> devices);

 private:
  void add(WorkScope& scope);

  std::mutex mutex_;
  std::vector<Ref<WorkScope>> scopes_;
  std::atomic<const WorkScope*> last_ = nullptr;  // null or one of scopes_
};

}  // namespace halyard::modules
