// How timelines move, and who is told.
#include "timeline.h"

#include <algorithm>
#include <memory>
#include <new>

#include "queue.h"

namespace halyard::vulkan {

namespace {

void settle_all(Waiter* first, const HostStatus& failure, DueList& due) {
  while (first) {
    Waiter* waiter = std::exchange(first, first->next);  // before it may be freed
    waiter->settled(*waiter, failure, due);
  }
}

// A callback of the host's.
struct Subscriber : Waiter, Due {
  halyard_subscriber_fn subscriber = nullptr;
  void* user = nullptr;
  HostStatus outcome;
};

void call_subscriber(Due& due_call, DueList&) {
  const std::unique_ptr<Subscriber> self(static_cast<Subscriber*>(&due_call));
  self->subscriber(self->user, std::move(self->outcome).release());
}

void subscription_settled(Waiter& waiter, HostStatus failure, DueList& due) {
  auto& self = static_cast<Subscriber&>(waiter);
  self.outcome = std::move(failure);
  due.push_call(self);
}

}  // namespace

HostStatus Semaphore::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

uint64_t Semaphore::value_on_device() const {
  const std::lock_guard lock(mutex_);
  return on_device();
}

uint64_t Semaphore::on_device() const {
  uint64_t value = import_ ? std::max(this->value(), import_->value()) : this->value();
  for (const Promise& promise : promises_)
    if (promise.value > value && promise.point.queue->has_done(promise.point.number)) value = promise.value;
  return value;
}

// Unlinks, under the lock, everybody who has nothing left to wait for: those in front.
Waiter* Semaphore::take_settled() {
  Waiter* settled = first_;
  Waiter* last = nullptr;
  while (first_ && progress(first_->value) != Progress::pending) {
    first_->listed = false;
    first_->point = source_;
    last = std::exchange(first_, first_->next);
  }
  if (!last) return nullptr;
  last->next = nullptr;
  (first_ ? first_->previous : last_) = nullptr;
  return settled;
}

void Semaphore::unlink(Waiter& waiter) {
  (waiter.previous ? waiter.previous->next : first_) = waiter.next;
  (waiter.next ? waiter.next->previous : last_) = waiter.previous;
  waiter.listed = false;
}

Result<> Semaphore::signal(uint64_t value, DueList& due) {
  Waiter* settled = nullptr;
  bool is_exported = false;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return {};
    if (const uint64_t now = on_device(); value <= now)
      return vulkan::fail(Code::INVALID_ARGUMENT,
                          "cannot signal value {}: the semaphore is at {} and its value can only grow", value,
                          now);
    source_ = {};
    value_.store(value, std::memory_order_release);
    settled = take_settled();
    is_exported = is_exported_;
  }
  if (is_exported) tell_exports();
  settle_all(settled, HostStatus(), due);
  return {};
}

void Semaphore::fail(const HostStatus& failure, DueList& due) {
  Waiter* settled = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failure_ = failure;
    failed_.store(true, std::memory_order_release);
    settled = take_settled();
    release_device();
  }
  settle_all(settled, failure, due);
}

void Semaphore::promise(uint64_t value, QueuePoint point, DueList& due) {
  Waiter* settled = nullptr;
  Waiter** end = &settled;
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || value <= value_) return;
    try {
      promises_.push_back({value, point});
    } catch (const std::bad_alloc&) {  // who waits is told when the value is there
      return;
    }
    Waiter* waiter = first_;
    while (waiter && waiter->value <= value) {
      Waiter* next = waiter->next;
      if (waiter->device == &point.queue->device()) {
        unlink(*waiter);
        waiter->point = point;
        waiter->promised = true;
        waiter->next = nullptr;
        *end = waiter;
        end = &waiter->next;
      }
      waiter = next;
    }
    if (is_exported_ || (first_ && first_->value <= value)) point.queue->want(point.number);
  }
  settle_all(settled, HostStatus(), due);
}

void Semaphore::keep(uint64_t value, QueuePoint point, DueList& due) {
  Waiter* settled = nullptr;
  bool is_exported = false;
  {
    const std::lock_guard lock(mutex_);
    if (!failed_ && value > value_) {
      source_ = point;
      value_.store(value, std::memory_order_release);
      settled = take_settled();
      is_exported = is_exported_;
    }
    std::erase_if(promises_, [&](const Promise& promise) { return promise.value <= value_; });
  }
  if (is_exported) tell_exports();
  settle_all(settled, HostStatus(), due);
}

void Semaphore::break_promise(uint64_t value, QueuePoint point) {
  const std::lock_guard lock(mutex_);
  std::erase_if(promises_, [&](const Promise& promise) {
    return promise.value == value && promise.point.queue == point.queue &&
           promise.point.number == point.number;
  });
}

const Semaphore::Promise* Semaphore::promise_for(uint64_t value, const Device* device) const {
  const Promise* found = nullptr;
  for (const Promise& promise : promises_) {
    if (promise.value < value || (device && &promise.point.queue->device() != device)) continue;
    if (!found || promise.value < found->value) found = &promise;
  }
  return found;
}

QueuePoint Semaphore::promised(uint64_t value) const {
  const std::lock_guard lock(mutex_);
  const Promise* found = failed_ ? nullptr : promise_for(value, nullptr);
  return found ? found->point : QueuePoint{};
}

bool Semaphore::watch(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  if (progress(waiter.value) != Progress::pending) {
    waiter.point = source_;
    return false;
  }
  if (import_ && waiter.device == &device_) {
    waiter.promised = true;
    return false;
  }
  if (waiter.device) {
    if (const Promise* found = promise_for(waiter.value, waiter.device)) {
      waiter.point = found->point;
      waiter.promised = true;
      return false;
    }
  }
  if (const Promise* found = promise_for(waiter.value, nullptr))
    found->point.queue->want(found->point.number);
  // Looked for from the end first: most wait for something later than all before.
  Waiter* next = last_ && last_->value > waiter.value ? first_ : nullptr;
  while (next && next->value <= waiter.value) next = next->next;
  waiter.next = next;
  waiter.previous = next ? next->previous : last_;
  (waiter.previous ? waiter.previous->next : first_) = &waiter;
  (waiter.next ? waiter.next->previous : last_) = &waiter;
  waiter.listed = true;
  return true;
}

bool Semaphore::unwatch(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  if (!waiter.listed) return false;
  unlink(waiter);
  return true;
}

void Semaphore::subscribe(uint64_t value, halyard_subscriber_fn subscriber, void* user, DueList& due) {
  auto* waiter = new Subscriber;
  waiter->value = value;
  waiter->settled = subscription_settled;
  waiter->run = call_subscriber;
  waiter->subscriber = subscriber;
  waiter->user = user;
  if (!watch(*waiter)) subscription_settled(*waiter, failure(), due);
}

bool Semaphore::unsubscribe(halyard_subscriber_fn subscriber, void* user) {
  std::unique_ptr<Subscriber> found;
  const std::lock_guard lock(mutex_);
  for (Waiter* waiter = first_; waiter; waiter = waiter->next) {
    if (waiter->settled != subscription_settled) continue;
    auto* candidate = static_cast<Subscriber*>(waiter);
    if (candidate->subscriber != subscriber || candidate->user != user) continue;
    unlink(*candidate);
    found.reset(candidate);
    return true;
  }
  return false;
}

}  // namespace halyard::vulkan
