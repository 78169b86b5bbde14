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

// Every wait for fences has the same steps: are_reached(); if a thread is about to block without limit,
// run_pending_work(); and the wait itself. Programs (hal.fence.await) wait by watch(), because their calls
// can be suspended and interrupted; embedders and replay call await(), which has all the steps. Null fences
// count as reached everywhere.

// Whether all are reached, or the first failure, which takes precedence. Takes no lock.
Result<bool> are_reached(std::span<Fence* const> fences);

// For a thread that is about to block without limit: runs pending work of the fences' devices on it, as long
// as there is work that is expected to be short (device_help in driver.h). Returns whether all fences are
// reached then. ABORTED: nothing can ever signal them (ruling 12); or their failure.
Result<bool> run_pending_work(std::span<Fence* const> fences);

// Blocks the calling thread until all fences are reached, or the timeout; 0 polls. OK, DEADLINE_EXCEEDED
// (timeout), or a failure as above.
Status await(std::span<Fence* const> fences, uint32_t timeout_milliseconds);

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
