// Timelines shared with other drivers: exports, which follow a timeline, and the imported timeline.
#include <algorithm>
#include <mutex>
#include <utility>

#include "timeline.h"

namespace halyard::vulkan {

Result<int32_t> Semaphore::export_fd() {
  if (import_)
    return vulkan::fail(HALYARD_UNIMPLEMENTED,
                        "an imported semaphore cannot be exported again; export the original");
  const std::lock_guard exports_lock(exports_mutex_);
  uint64_t initial = 0;
  {
    const std::lock_guard lock(mutex_);
    is_exported_ = true;
    initial = value_;
    for (const Promise& promise : promises_) promise.submission.queue->want(promise.submission.number);
  }
  SharedSemaphore semaphore = HALYARD_KIT_TRY(SharedSemaphore::create(device_, initial));
  exports_.reserve(exports_.size() + 1);
  const int32_t descriptor = HALYARD_KIT_TRY(semaphore.descriptor());
  exports_.push_back({std::move(semaphore), initial});
  signal_current();
  signal_promised();
  return descriptor;
}

bool Semaphore::underway(uint64_t value) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return false;
    if (on_device() >= value) return true;
    if (!promise_for(value, nullptr)) return false;
    if (!is_exported_) return true;
  }
  // Called before a wait for the semaphore.
  const std::lock_guard exports_lock(exports_mutex_);
  signal_promised();
  return true;
}

// A queue can signal the value that its work will reach if no other value must come before it and no other
// queue has a pending signal. Otherwise the host signals when the value is reached.
void Semaphore::signal_promised() {
  const auto promised_as = [&](uint64_t value) {
    const std::lock_guard lock(mutex_);
    const Promise* found = failed_ ? nullptr : promise_for(value, &device_);
    return found && found->value == value ? found->submission : QueueSubmission{};
  };
  for (Export& each : exports_) {
    for (QueueSubmission submission = promised_as(each.signalled + 1);
         submission.queue && each.semaphore.signal_behind(*submission.queue, each.signalled + 1);
         submission = promised_as(each.signalled + 1))
      ++each.signalled;
  }
}

// Signals only the current value, because it covers earlier values.
void Semaphore::update_exports() {
  const std::lock_guard exports_lock(exports_mutex_);
  signal_current();
}

void Semaphore::signal_current() {
  const uint64_t value = this->value();
  for (Export& each : exports_) {
    if (value <= each.signalled) continue;
    each.semaphore.signal(value);
    each.signalled = value;
  }
}

void Semaphore::look() {
  TaskList ready;
  if (import_) keep(import_->value(), {}, ready);
  ready.run();
}

VkSemaphore Semaphore::await_on_device(uint64_t value) {
  const std::lock_guard lock(mutex_);
  if (failed_) return VK_NULL_HANDLE;
  awaited_ = std::max(awaited_, value);
  return import_->handle();
}

// Signals the awaited value, so that the device continues, because the value will never be reached. The
// waiters have been notified of the failure, so the results of the work that now runs are discarded.
void Semaphore::release_device() {
  if (import_ && awaited_ > import_->value()) import_->signal(awaited_);
}

}  // namespace halyard::vulkan
