// Bridges: what the host does between drivers that know nothing of each other. It makes signals, and has one
// driver's semaphore follow another's.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

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

}  // namespace halyard::hal
