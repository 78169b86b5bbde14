// The host signals at once, or when another driver's timepoint is reached.
#include "hal/queue/bridge.h"

#include <utility>

#include "hal/queue/wait.h"

namespace halyard::hal {

namespace {

// Passes the driver's message without additions, which would need memory.
void make_signal(Semaphore& semaphore, uint64_t value, const Status& failure) noexcept {
  if (failure) return semaphore.fail(failure);
  const halyard_driver_table_t& table = semaphore.device().table();
  Status failed = Status::adopt(table.semaphore_signal(semaphore.handle(), value));
  if (failed && failed.code() != Code::INVALID_ARGUMENT) semaphore.fail(std::move(failed));
}

}  // namespace

void make_signals(Fence* fence, const Device& device, HostSignals which, const Status& failure) noexcept {
  if (!fence) return;
  for (const Timepoint& timepoint : fence->timepoints()) {
    if (!is_of_driver(timepoint, device) || which == HostSignals::all)
      make_signal(*timepoint.semaphore, timepoint.value, failure);
  }
}

Result<Ref<Semaphore>> make_bridge(Device& device, const Timepoint& timepoint) {
  Ref<Semaphore> own = HALYARD_TRY(Semaphore::create(Ref<Device>::share(&device), 0));
  HALYARD_TRY(when_reached({&timepoint, 1}, [own](const Status& failure) { make_signal(*own, 1, failure); }));
  return own;
}

Result<> pass_failure(const Timepoint& timepoint, Ref<Semaphore> semaphore) {
  return when_reached({&timepoint, 1}, [semaphore = std::move(semaphore)](Status failure) {
    if (failure) semaphore->fail(std::move(failure));
  });
}

}  // namespace halyard::hal
