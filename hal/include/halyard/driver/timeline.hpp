// Of the kit (halyard/driver.hpp): timelines and their waiters.
#ifndef HALYARD_DRIVER_TIMELINE_HPP_
#define HALYARD_DRIVER_TIMELINE_HPP_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "halyard/driver/failure.hpp"
#include "halyard/driver/task.hpp"

namespace halyard::kit {

// Waits for `value`. The timeline calls `completed` once, without locks held: with an empty status if the
// value is reached, otherwise with the timeline's failure. `completed` may free the waiter.
template <typename Self, typename List>
struct WaiterLink {
  uint64_t value = 0;
  void (*completed)(Self& waiter, Status failure, List& ready) = nullptr;
  // The timeline's, guarded by its lock:
  Self* next = nullptr;
  Self* previous = nullptr;
  bool listed = false;
};

// Waiters ordered by value, then by arrival. The list is linked through the waiters, so advancing a timeline
// allocates nothing. Only any() is thread-safe.
template <typename W>
class WaiterList {
 public:
  bool any() const { return count_.load() != 0; }
  W* first() const { return first_; }
  void insert(W& waiter) {
    W* before = last_;  // a new waiter's value is usually the largest, or the smallest
    if (first_ && waiter.value < first_->value) before = nullptr;
    while (before && before->value > waiter.value) before = before->previous;
    waiter.previous = before;
    waiter.next = before ? before->next : first_;
    (waiter.previous ? waiter.previous->next : first_) = &waiter;
    (waiter.next ? waiter.next->previous : last_) = &waiter;
    waiter.listed = true;
    count_.fetch_add(1);
  }
  void remove(W& waiter) {
    (waiter.previous ? waiter.previous->next : first_) = waiter.next;
    (waiter.next ? waiter.next->previous : last_) = waiter.previous;
    waiter.listed = false;
    count_.fetch_sub(1);
  }
  // Removes the waiters at the front for which `is_complete` is true. Returns them as a chain linked by
  // `next`; null if there are none.
  template <typename IsComplete>
  W* take_front(IsComplete is_complete) {
    W* const completed = first_;
    W* last = nullptr;
    uint32_t count = 0;
    for (; first_ && is_complete(*first_); ++count) {
      first_->listed = false;
      last = std::exchange(first_, first_->next);
    }
    if (!last) return nullptr;
    count_.fetch_sub(count);
    last->next = nullptr;
    (first_ ? first_->previous : last_) = nullptr;
    return completed;
  }

 private:
  W* first_ = nullptr;
  W* last_ = nullptr;
  std::atomic<uint32_t> count_ = 0;
};

// Notifies a chain of waiters. Must be called without locks held.
template <typename W, typename List>
void complete_all(W* first, const Status& failure, List& ready) {
  while (first) {
    W* const waiter = std::exchange(first, first->next);  // `completed` may free the waiter
    waiter->completed(*waiter, failure, ready);
  }
}

enum class Progress : uint8_t { pending, reached, failed };

// The default store of subscriptions.
struct FromHeap {
  void* take(size_t size) const { return ::operator new(size); }
  void give(void* memory, size_t size) const noexcept { ::operator delete(memory, size); }
};

// A semaphore: a value that only grows, or a permanent failure; and its waiters. advance() takes the lock
// only if there are waiters, which most timelines lack. Advancing makes tasks ready (held queue work, calls
// of subscribers) and returns them in a list. Thread-safe.
//
// Timeline below is the default. A driver whose timelines can do more derives its own class from this one:
// `Self` is that class, `W` derives from WaiterLink, `D` from TaskLink, `List` is its list of ready tasks,
// and `Store`, a small value, allocates and frees subscriptions. Self may redefine watch() and change(); its
// versions are called here.
template <typename Self, typename W, typename D, typename List, typename Store = FromHeap>
class BasicTimeline {
 public:
  using Waiter = W;

  BasicTimeline(const Services& services, uint64_t initial, Store store = {})
      : services_(services), value_(initial), store_(store) {}
  BasicTimeline(const BasicTimeline&) = delete;
  BasicTimeline& operator=(const BasicTimeline&) = delete;

  const Services& services() const { return services_; }
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  // The value that a query by a program returns.
  uint64_t seen_value() const { return value(); }
  // A failure takes precedence over the value [R84]. Takes no lock.
  Progress progress(uint64_t wanted) const {
    if (failed_.load(std::memory_order_acquire)) return Progress::failed;
    return value() >= wanted ? Progress::reached : Progress::pending;
  }
  Status failure() const {  // empty if it has not failed
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  // The host's signal: INVALID_ARGUMENT if `to` is not larger than the current value. No effect on a failed
  // timeline.
  Result<> signal(uint64_t to, List& ready) {
    if (advance(to, ready) || failed_.load(std::memory_order_acquire)) return {};
    return refusal(to, value());
  }
  // A signal by queue work: no effect if the value is not larger, or the timeline has failed [R64]. Returns
  // whether the value changed.
  bool advance(uint64_t to, List& ready) {
    if (failed_.load(std::memory_order_acquire) || !grow(to)) return false;
    if (!waiters_.any()) return true;
    W* completed = nullptr;
    {
      const std::lock_guard lock(mutex_);
      completed = take_completed();
    }
    complete_all(completed, Status(), ready);  // a failed timeline has no waiters
    return true;
  }
  void fail(const Status& failure, List& ready) {
    W* completed = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (failed_.load(std::memory_order_relaxed)) return;
      failure_ = failure;
      failed_.store(true, std::memory_order_release);
      completed = take_completed();
    }
    complete_all(completed, failure, ready);
  }

  // Adds the waiter to the list. Returns false, and does nothing, if the wait is already over.
  bool watch(W& waiter) {
    const std::lock_guard lock(mutex_);
    return list(waiter);
  }
  // Removes the waiter. Returns false if its `completed` has been or is being called.
  bool unwatch(W& waiter) {
    const std::lock_guard lock(mutex_);
    if (!waiter.listed) return false;
    waiters_.remove(waiter);
    return true;
  }

  // Adds a subscriber of the host. If the wait is already over, its call is ready at once.
  void subscribe(uint64_t value, halyard_subscriber_fn function, void* user, List& ready) {
    auto* const made = new (store_.take(sizeof(Subscriber))) Subscriber(store_, value, function, user);
    if (!static_cast<Self*>(this)->watch(*made)) Subscriber::on_completed(*made, failure(), ready);
  }
  // Removes a subscriber. Returns false if it has been or is being called.
  bool unsubscribe(halyard_subscriber_fn function, void* user) {
    const std::lock_guard lock(mutex_);
    for (W* waiter = waiters_.first(); waiter; waiter = waiter->next) {
      if (waiter->completed != Subscriber::on_completed) continue;
      auto* const found = static_cast<Subscriber*>(waiter);
      if (found->function != function || found->user != user) continue;
      waiters_.remove(*found);
      found->destroy();
      return true;
    }
    return false;
  }

 protected:
  // A signaller writes the value, then reads the count of waiters; a waiter increments the count, then reads
  // the value. So at least one of them sees the other.
  static bool change(std::atomic<uint64_t>& value, uint64_t& expected, uint64_t to) {
    return value.compare_exchange_strong(expected, to, std::memory_order_seq_cst, std::memory_order_relaxed);
  }
  static Failure refusal(uint64_t to, uint64_t now) {
    return {HALYARD_INVALID_ARGUMENT, "cannot signal value " + std::to_string(to) + ": the semaphore is at " +
                                          std::to_string(now) + " and its value can only grow"};
  }
  // Called under the lock.
  bool list(W& waiter) {
    waiters_.insert(waiter);
    if (!failed_.load(std::memory_order_relaxed) && value_.load() < waiter.value) return true;
    waiters_.remove(waiter);
    return false;
  }
  W* take_completed() {
    return waiters_.take_front(
        [this](const W& waiter) { return progress(waiter.value) != Progress::pending; });
  }

  const Services& services_;
  std::atomic<uint64_t> value_;
  std::atomic<bool> failed_ = false;  // written under the lock
  mutable std::mutex mutex_;          // guards the fields below
  Status failure_;
  WaiterList<W> waiters_;

 private:
  struct Subscriber final : W, D {
    Subscriber(Store from, uint64_t wanted, halyard_subscriber_fn called, void* argument)
        : store(from), function(called), user(argument) {
      W::value = wanted;
      W::completed = on_completed;
      D::run = call;
    }
    static void on_completed(W& waiter, Status failure, List& ready) {
      auto& self = static_cast<Subscriber&>(waiter);
      self.outcome = std::move(failure);
      ready.push_call(self);
    }
    static void call(D& task, List&) {
      auto& self = static_cast<Subscriber&>(task);
      self.function(self.user, std::move(self.outcome).release());
      self.destroy();
    }
    void destroy() {
      const Store from = store;
      this->~Subscriber();
      from.give(this, sizeof(Subscriber));
    }

    [[no_unique_address]] const Store store;
    const halyard_subscriber_fn function;
    void* const user;
    Status outcome;
  };

  // Returns false if the value is already reached.
  bool grow(uint64_t to) {
    uint64_t now = value_.load(std::memory_order_relaxed);
    while (now < to)
      if (Self::change(value_, now, to)) return true;
    return false;
  }

  [[no_unique_address]] const Store store_;
};

struct Waiter : WaiterLink<Waiter, TaskList> {};

class Timeline final : public BasicTimeline<Timeline, Waiter, Task, TaskList> {
 public:
  using BasicTimeline::BasicTimeline;

 private:
  friend BasicTimeline;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_TIMELINE_HPP_
