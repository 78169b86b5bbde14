// Waiting for timepoints: when all are reached, or the first of them fails, a thread that blocks goes on, an
// invocation is woken, or a step is done. It runs on whichever thread a driver calls back, without a thread
// of the host's; who waits for what is listed in hal/README.md. Thread-safe.
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

// hal.fence.await: waits for all; nulls are reached. OK, DEADLINE_EXCEEDED (timeout), ABORTED (ruling 12:
// nothing can ever reach it), or the first failure, which is looked for first. Blocks the calling thread; 0
// polls. Nothing is locked or allocated here when all are reached. `timed_out` (may be null) tells a timeout
// from a failure with that code.
Status await(std::span<Fence* const> fences, uint32_t timeout_milliseconds, bool* timed_out = nullptr);

// Ruling 12 for a caller that is about to block without limit: ABORTED where nothing can ever reach the
// fences; or their failure.
Status check_reachable(std::span<Fence* const> fences);

// For a caller that is about to block: lends its thread to the devices, for as long as there is something for
// it to do that is over soon.
void run_pending_work(std::span<Fence* const> fences);

// Wakes once, on any thread and maybe before it returns: when all fences are reached or one has failed. The
// object stands for the wait, and dropping it ends the wait; a wakeup that is under way then may still come.
// Null: it has been woken. `memory` (may be null) is charged: RESOURCE_EXHAUSTED.
Result<Ref<Object>> watch(std::span<Fence* const> fences, Wakeup wakeup, Budget* memory = nullptr);

// Calls `then` once, as a step (hal/device/callback_scope.h), on any thread and maybe before it returns: when
// all timepoints are reached, or with the failure of the first that fails. On failure never. What `then`
// throws is lost, so it tells whom it concerns itself. The wait holds no reference that could signal a
// timepoint, and has its memory from the beginning: where a driver calls back it can neither run out nor
// throw.
using Then = std::move_only_function<void(Status)>;
Result<> when_reached(std::span<const Timepoint> timepoints, Then then);
Result<> when_reached(const Fence* fence, Then then);  // null is reached

}  // namespace halyard::hal
