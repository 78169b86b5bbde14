// Waiting for timepoints: when all are reached, or the first one fails, a blocked thread continues, an
// invocation is woken, or a step runs. This happens on the thread that calls the driver's subscriber; the
// host has no thread of its own for it. hal/README.md lists all waits. Thread-safe.
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
inline constexpr size_t kMaximumAwaitedFences = 32;

// hal.fence.await: waits for all fences; null fences count as reached. OK, DEADLINE_EXCEEDED (timeout),
// ABORTED (ruling 12: nothing can ever signal it), or the first failure, which takes precedence. Blocks the
// calling thread; timeout 0 polls. Takes no lock and allocates nothing if all are reached.
Status await(std::span<Fence* const> fences, uint32_t timeout_milliseconds);
// Whether all are reached, or the first failure. Allocates nothing.
Result<bool> are_reached(std::span<Fence* const> fences);

// Ruling 12 for a caller that is about to block without limit: ABORTED if nothing can ever signal the fences;
// or their failure.
Status check_reachable(std::span<Fence* const> fences);

// For a caller that is about to block: runs pending work of the fences' devices on this thread, as long as
// there is work that is expected to be short (device_help in driver.h).
void run_pending_work(std::span<Fence* const> fences);

// Wakes once, on any thread and possibly before it returns, when all fences are reached or one has failed.
// Dropping the returned object ends the wait, though a wakeup in progress may still come. Null: it has been
// woken already. `memory` (may be null) is charged: RESOURCE_EXHAUSTED.
Result<Ref<Object>> watch(std::span<Fence* const> fences, Wakeup wakeup, Budget* memory = nullptr);

// Calls `then` once, as a step (hal/device/callback_scope.h), on any thread and possibly before it returns:
// when all timepoints are reached, or with the failure of the first one that fails. Not called if this
// function fails. Exceptions of `then` are lost, so it must report failures itself. The wait holds no
// reference that could signal a timepoint. Its memory is allocated in advance, so that it can neither fail
// nor throw in a driver's callback.
using Then = std::move_only_function<void(Status)>;
Result<> when_reached(std::span<const Timepoint> timepoints, Then then);
Result<> when_reached(const Fence* fence, Then then);  // null counts as reached

}  // namespace halyard::hal
