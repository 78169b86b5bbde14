// Bridges between drivers: the host signals semaphores, and makes one driver's semaphore follow another
// driver's.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

// The timepoints of a fence that the host signals.
enum class HostSignals : uint8_t { foreign, all };

// Signals now; in a driver's callback, call it within a step. A timepoint that is already reached stays as it
// is, without an error (ruling 9). If a driver cannot signal, the semaphore fails, so that no thread waits
// for ever. `fence` may be null.
void make_signals(Fence* fence, const Device& device, HostSignals which, const Status& failure) noexcept;

// A semaphore of `device`. The host signals it with 1 when the other driver's timepoint is reached, and fails
// it when the timepoint fails.
Result<Ref<Semaphore>> make_bridge(Device& device, const Timepoint& timepoint);

// Fails `semaphore` if the timepoint fails before it is reached.
Result<> pass_failure(const Timepoint& timepoint, Ref<Semaphore> semaphore);

}  // namespace halyard::hal
