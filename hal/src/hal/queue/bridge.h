// Bridges: what the host does between drivers that know nothing of each other. It makes signals, has one
// driver's semaphore wait for another's, and holds work until a fence is reached, all without a thread of its
// own: it runs on whichever thread a driver calls back. What a driver calls back has had its memory since it
// was set up: there it can neither run out nor throw.
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "base/step.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

// Runs the step; on a thread that is in one already, after it. Work that alternates between drivers would
// otherwise nest their calls without bound.
void run_step(Step& step) noexcept;

// Which timepoints of a fence the host signals.
enum class Makes : uint8_t { foreign, all };

// Now; within a step where a driver is calling back. A timepoint that is reached already stays as it is,
// without an error (ruling 9); a driver that cannot signal fails it, so that nobody waits for ever. `fence`
// may be null.
void make_signals(Fence* fence, const Device& device, Makes makes, const Status& failure) noexcept;

// A semaphore of `device` that gets 1 as soon as the other driver's timepoint is reached, or its failure.
Result<Ref<Semaphore>> make_bridge(Device& device, const Timepoint& timepoint);

// Fails `semaphore` if the timepoint fails before it is reached.
Result<> pass_failure(const Timepoint& timepoint, Ref<Semaphore> semaphore);

// Calls `due` once, as a step, on any thread and maybe before it returns: when all timepoints of `fence` (may
// be null) are reached, or with the failure of the first that fails. On failure never. What `due` throws is
// lost, so it tells whom it concerns itself.
Result<> when_reached(const Ref<Fence>& fence, std::move_only_function<void(Status)> due);

}  // namespace halyard::hal
