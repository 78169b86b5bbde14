// Advances timelines and notifies waiters.
#include "timeline.h"

#include <algorithm>
#include <new>

namespace halyard::vulkan {

uint64_t Semaphore::seen_value() const {
  const std::lock_guard lock(mutex_);
  return on_device();
}

uint64_t Semaphore::on_device() const {
  uint64_t value = import_ ? std::max(this->value(), import_->value()) : this->value();
  for (const Promise& promise : promises_)
    if (promise.value > value && promise.submission.queue->has_done(promise.submission.number))
      value = promise.value;
  return value;
}

// Called under the lock.
Waiter* Semaphore::take_completed_here() {
  Waiter* const completed = take_completed();
  for (Waiter* waiter = completed; waiter; waiter = waiter->next) waiter->submission = source_;
  return completed;
}

// The host signals the original semaphore instead [R111].
Result<> Semaphore::check_no_import(const char* what) const {
  if (!import_) return {};
  return vulkan::fail(HALYARD_UNIMPLEMENTED,
                      "an imported semaphore cannot be {}; do so with the exported one", what);
}

Result<> Semaphore::signal(uint64_t value, TaskList& ready) {
  HALYARD_KIT_TRY(check_no_import("signalled"));
  Waiter* completed = nullptr;
  bool is_exported = false;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return {};
    if (const uint64_t now = on_device(); value <= now) return refusal(value, now);
    source_ = {};
    value_.store(value);
    completed = take_completed_here();
    is_exported = is_exported_;
  }
  if (is_exported) update_exports();
  kit::complete_all(completed, Status(), ready);
  return {};
}

void Semaphore::fail(const Status& failure, TaskList& ready) {
  BasicTimeline::fail(failure, ready);
  const std::lock_guard lock(mutex_);
  release_device();
}

Result<> Semaphore::subscribe(uint64_t value, halyard_subscriber_fn subscriber, void* user, TaskList& ready) {
  HALYARD_KIT_TRY(check_no_import("subscribed to"));
  BasicTimeline::subscribe(value, subscriber, user, ready);
  return {};
}

void Semaphore::promise(uint64_t value, QueueSubmission submission, TaskList& ready) {
  Waiter* completed = nullptr;
  Waiter** end = &completed;
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || value <= value_) return;
    try {
      promises_.push_back({value, submission});
    } catch (const std::bad_alloc&) {  // waiters are notified when the value is reached
      return;
    }
    Waiter* waiter = waiters_.first();
    while (waiter && waiter->value <= value) {
      Waiter* next = waiter->next;
      if (waiter->device == &submission.queue->device()) {
        waiters_.remove(*waiter);
        waiter->submission = submission;
        waiter->promised = true;
        waiter->next = nullptr;
        *end = waiter;
        end = &waiter->next;
      }
      waiter = next;
    }
    if (is_exported_ || (waiters_.first() && waiters_.first()->value <= value))
      submission.queue->want(submission.number);
  }
  kit::complete_all(completed, Status(), ready);
}

void Semaphore::keep(uint64_t value, QueueSubmission submission, TaskList& ready) {
  Waiter* completed = nullptr;
  bool is_exported = false;
  {
    const std::lock_guard lock(mutex_);
    if (!failed_ && value > value_) {
      source_ = submission;
      value_.store(value);
      completed = take_completed_here();
      is_exported = is_exported_;
    }
    std::erase_if(promises_, [&](const Promise& promise) { return promise.value <= value_; });
  }
  if (is_exported) update_exports();
  kit::complete_all(completed, Status(), ready);
}

void Semaphore::break_promise(uint64_t value, QueueSubmission submission) {
  const std::lock_guard lock(mutex_);
  std::erase_if(promises_, [&](const Promise& promise) {
    return promise.value == value && promise.submission.queue == submission.queue &&
           promise.submission.number == submission.number;
  });
}

const Semaphore::Promise* Semaphore::promise_for(uint64_t value, const Device* device) const {
  const Promise* found = nullptr;
  for (const Promise& promise : promises_) {
    if (promise.value < value || (device && &promise.submission.queue->device() != device)) continue;
    if (!found || promise.value < found->value) found = &promise;
  }
  return found;
}

QueueSubmission Semaphore::promised(uint64_t value) const {
  const std::lock_guard lock(mutex_);
  const Promise* found = failed_ ? nullptr : promise_for(value, nullptr);
  return found ? found->submission : QueueSubmission{};
}

bool Semaphore::watch(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  if (progress(waiter.value) != Progress::pending) {
    waiter.submission = source_;
    return false;
  }
  if (import_ && waiter.device == &device_) {
    waiter.promised = true;
    return false;
  }
  if (waiter.device) {
    if (const Promise* found = promise_for(waiter.value, waiter.device)) {
      waiter.submission = found->submission;
      waiter.promised = true;
      return false;
    }
  }
  if (const Promise* found = promise_for(waiter.value, nullptr))
    found->submission.queue->want(found->submission.number);
  waiters_.insert(waiter);
  return true;
}

}  // namespace halyard::vulkan
