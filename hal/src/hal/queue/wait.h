// Waits for timepoints. When all are reached, or the first one fails, a blocked thread continues, an
// invocation is woken, or a step runs. This happens on the thread on which the driver calls the subscriber;
// the host has no thread for waiting. hal/README.md lists all waits. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "base/wait.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

inline constexpr uint32_t kWaitForever = 0xFFFFFFFFu;
inline constexpr size_t kMaxAwaitedFences = 32;

// Every wait for fences has the same steps: are_reached(); then, if a thread is about to block without a time
// limit, run_pending_work(); then the wait itself. Programs (hal.fence.await) wait with watch(), because
// their calls can be suspended and interrupted. Embedders and replay call await(), which contains all the
// steps. Null fences always count as reached.

// Whether all are reached, or the first failure, which takes precedence. Takes no lock.
Result<bool> are_reached(std::span<Fence* const> fences);

// Called before a thread blocks without a time limit: runs pending work of the fences' devices on this
// thread, as long as there is work that is expected to be short (device_help in driver.h). Returns whether
// all fences are reached afterwards, or their failure. ABORTED: nothing can ever signal them (ruling 12).
Result<bool> run_pending_work(std::span<Fence* const> fences);

// Blocks the calling thread until all fences are reached, or until the timeout; 0 polls. Returns OK,
// DEADLINE_EXCEEDED (timeout), or a failure as above.
Status await(std::span<Fence* const> fences, uint32_t timeout_milliseconds);

// Wakes once, when all fences are reached or one has failed: on any thread, possibly before this function
// returns. Dropping the returned object ends the wait, but a wakeup in progress may still arrive. Null:
// already woken. `memory` (may be null) is charged: RESOURCE_EXHAUSTED.
Result<Ref<Object>> watch(std::span<Fence* const> fences, Wakeup wakeup, Budget* memory = nullptr);

// Calls `then` once, when all timepoints are reached, or with the failure of the first one that fails. `then`
// runs as a step (hal/device/callback_scope.h), on any thread, possibly before this function returns. Not
// called if this function fails. `then` must report failures itself, because its exceptions are lost. The
// wait holds no reference that could signal a timepoint. Its memory is allocated in advance, so that it can
// neither fail nor throw in a driver's callback.
using Then = std::move_only_function<void(Status)>;
Result<> when_reached(std::span<const Timepoint> timepoints, Then then);
Result<> when_reached(const Fence* fence, Then then);  // null counts as reached

}  // namespace halyard::hal
