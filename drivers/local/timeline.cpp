// How timelines move, and how threads and subscribers wait for them.
#include "timeline.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <vector>

#include "base/atomics.h"

namespace halyard::local {

namespace {

void settle_all(Waiter* first, const HostStatus& failure, DueList& due) {
  while (first) {
    Waiter* waiter = std::exchange(first, first->next);  // before it may be freed
    waiter->settled(*waiter, failure, due);
  }
}

// A callback of the host's.
struct Subscriber : Waiter, Due {
  NodeCache* nodes = nullptr;
  halyard_subscriber_fn subscriber = nullptr;
  void* user = nullptr;
  HostStatus outcome;
};

void call_subscriber(Due& due_call, DueList&) {
  auto& subscriber = static_cast<Subscriber&>(due_call);
  const NodeCache::Owned<Subscriber> self(&subscriber, {subscriber.nodes});
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

// Unlinks, under the lock, everybody who has nothing left to wait for: those in front.
Waiter* Semaphore::take_settled() {
  Waiter* settled = first_;
  Waiter* last = nullptr;
  uint32_t count = 0;
  while (first_ && progress(first_->value) != Progress::pending) {
    first_->listed = false;
    last = std::exchange(first_, first_->next);
    ++count;
  }
  if (!last) return nullptr;
  waiters_.fetch_sub(count);
  last->next = nullptr;
  (first_ ? first_->previous : last_) = nullptr;
  return settled;
}

void Semaphore::unlink(Waiter& waiter) {
  (waiter.previous ? waiter.previous->next : first_) = waiter.next;
  (waiter.next ? waiter.next->previous : last_) = waiter.previous;
  waiter.listed = false;
  waiters_.fetch_sub(1);
}

// False where it is there already.
bool Semaphore::grow(uint64_t value) {
  uint64_t now = value_.load(std::memory_order_relaxed);
  while (now < value) {
    if (compare_exchange(value_, now, value, std::memory_order_seq_cst)) return true;
  }
  return false;
}

void Semaphore::settle_reached(DueList& due) {
  if (waiters_.load() == 0) return;
  Waiter* settled = nullptr;
  {
    const std::lock_guard lock(mutex_);
    settled = take_settled();
  }
  settle_all(settled, HostStatus(), due);  // what has failed has no waiters left
}

Result<> Semaphore::signal(uint64_t value, DueList& due) {
  if (failed_.load(std::memory_order_acquire)) return {};
  if (!grow(value))
    return halyard::fail(Code::INVALID_ARGUMENT,
                         "cannot signal value {}: the semaphore is at {} and its value can only grow", value,
                         value_.load());
  settle_reached(due);
  return {};
}

void Semaphore::advance(uint64_t value, DueList& due) {
  if (failed_.load(std::memory_order_acquire) || !grow(value)) return;
  settle_reached(due);
}

void Semaphore::fail(const HostStatus& failure, DueList& due) {
  Waiter* settled = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failure_ = failure;
    failed_.store(true, std::memory_order_release);
    settled = take_settled();
  }
  settle_all(settled, failure, due);
}

bool Semaphore::watch(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  link(waiter);
  if (!failed_.load(std::memory_order_relaxed) && value_.load() < waiter.value) return true;
  unlink(waiter);
  return false;
}

void Semaphore::link(Waiter& waiter) {
  // Looked for from the end first: most wait for something later than all before.
  Waiter* next = last_ && last_->value > waiter.value ? first_ : nullptr;
  while (next && next->value <= waiter.value) next = next->next;
  waiter.next = next;
  waiter.previous = next ? next->previous : last_;
  (waiter.previous ? waiter.previous->next : first_) = &waiter;
  (waiter.next ? waiter.next->previous : last_) = &waiter;
  waiter.listed = true;
  waiters_.fetch_add(1);
}

bool Semaphore::unwatch(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  if (!waiter.listed) return false;
  unlink(waiter);
  return true;
}

void Semaphore::subscribe(uint64_t value, halyard_subscriber_fn subscriber, void* user, DueList& due) {
  Subscriber* waiter = nodes_.make<Subscriber>().release();
  waiter->nodes = &nodes_;
  waiter->value = value;
  waiter->settled = subscription_settled;
  waiter->run = call_subscriber;
  waiter->subscriber = subscriber;
  waiter->user = user;
  if (!watch(*waiter)) subscription_settled(*waiter, failure(), due);
}

bool Semaphore::unsubscribe(halyard_subscriber_fn subscriber, void* user) {
  NodeCache::Owned<Subscriber> found(nullptr, {&nodes_});
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

namespace {

// A blocked thread, shared with the timelines that it waits for: whoever settles a wait may come after the
// thread has left.
struct Blocked {
  struct Wait : Waiter {
    std::shared_ptr<Blocked> owner;  // while on a list, or being settled
  };

  explicit Blocked(size_t count) : waits(count) {}

  std::mutex mutex;
  std::condition_variable changed;
  size_t reached = 0;
  HostStatus failure;
  std::vector<Wait> waits;

  void settle(HostStatus with) {
    {
      const std::lock_guard lock(mutex);
      if (!with) {
        ++reached;
      } else if (!failure) {
        failure = std::move(with);
      }
    }
    changed.notify_all();
  }
};

void wake(Waiter& waiter, HostStatus failure, DueList&) {
  const std::shared_ptr<Blocked> owner = std::move(static_cast<Blocked::Wait&>(waiter).owner);
  owner->settle(std::move(failure));
}

std::unexpected<Status> deadline_exceeded(size_t reached, size_t count) {
  return fail(Code::DEADLINE_EXCEEDED, "the deadline passed with {} of {} timepoints reached", reached,
              count);
}

// How far they are; the first that has failed.
struct Look {
  size_t reached = 0;
  const Semaphore* failed = nullptr;
};

Look look_at(std::span<const halyard_timepoint_t> timepoints) {
  Look look;
  for (const halyard_timepoint_t& point : timepoints) {
    const Progress progress = point.semaphore->progress(point.value);
    if (progress == Progress::failed) return {look.reached, point.semaphore};
    if (progress == Progress::reached) ++look.reached;
  }
  return look;
}

size_t needed_of(std::span<const halyard_timepoint_t> timepoints, bool any) {
  return any && !timepoints.empty() ? 1 : timepoints.size();
}

}  // namespace

bool is_over(std::span<const halyard_timepoint_t> timepoints, bool any) {
  const Look look = look_at(timepoints);
  return look.failed || look.reached >= needed_of(timepoints, any);
}

HostStatus wait_for(const Services& services, std::span<const halyard_timepoint_t> timepoints, bool any,
                    int64_t deadline_ns) {
  const Look look = look_at(timepoints);
  if (look.failed) return look.failed->failure();
  size_t reached = look.reached;
  const size_t needed = needed_of(timepoints, any);
  if (reached >= needed) return {};
  if (deadline_ns == 0) return to_host(services, deadline_exceeded(reached, timepoints.size()));

  const auto blocked = std::make_shared<Blocked>(timepoints.size());
  for (size_t i = 0; i < timepoints.size(); ++i) {
    Blocked::Wait& wait = blocked->waits[i];
    wait.value = timepoints[i].value;
    wait.settled = wake;
    wait.owner = blocked;
    if (timepoints[i].semaphore->watch(wait)) continue;
    wait.owner.reset();
    blocked->settle(timepoints[i].semaphore->failure());
  }

  const auto done = [&] { return blocked->failure || blocked->reached >= needed; };
  std::unique_lock lock(blocked->mutex);
  if (deadline_ns == HALYARD_WAIT_FOREVER) {
    blocked->changed.wait(lock, done);
  } else {  // CLOCK_MONOTONIC, as std::chrono::steady_clock
    const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(deadline_ns)};
    blocked->changed.wait_until(lock, deadline, done);
  }
  HostStatus failure = blocked->failure;
  reached = blocked->reached;
  lock.unlock();

  for (size_t i = 0; i < timepoints.size(); ++i)
    if (timepoints[i].semaphore->unwatch(blocked->waits[i])) blocked->waits[i].owner.reset();
  if (failure) return failure;
  if (reached >= needed) return {};
  return to_host(services, deadline_exceeded(reached, timepoints.size()));
}

}  // namespace halyard::local
