#include "modules/work_scopes.h"

namespace halyard::modules {

void WorkScopes::add(WorkScope& scope) {
  const std::lock_guard lock(mutex_);
  // A later scope may get the address of a scope that is dropped below.
  last_.store(nullptr, std::memory_order_release);
  // Drops scopes of calls that have ended and have no work in flight.
  std::erase_if(scopes_,
                [&](const Ref<WorkScope>& known) { return known->unique() || known.get() == &scope; });
  scopes_.push_back(Ref<WorkScope>::share(&scope));
  last_.store(&scope, std::memory_order_release);
}

void WorkScopes::stop_on(std::span<const Ref<hal::Device>> devices) {
  const std::lock_guard lock(mutex_);
  for (const Ref<WorkScope>& scope : scopes_)
    if (!scope->unique())
      for (const Ref<hal::Device>& device : devices) device->stop_without_users(scope);
}

}  // namespace halyard::modules
