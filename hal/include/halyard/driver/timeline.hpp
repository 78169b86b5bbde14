// Of the kit (halyard/driver.hpp): timelines, and those who wait for them.
#ifndef HALYARD_DRIVER_TIMELINE_HPP_
#define HALYARD_DRIVER_TIMELINE_HPP_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "halyard/driver/due.hpp"
#include "halyard/driver/failure.hpp"

namespace halyard::kit {

// Somebody who waits for `value`. `settled` is called once, without locks: the value is reached (empty
// status), or the timeline has failed. It may free the waiter.
template <typename Self, typename List>
struct WaiterLink {
  uint64_t value = 0;
  void (*settled)(Self& waiter, Status failure, List& due) = nullptr;
  // The timeline's, under its lock:
  Self* next = nullptr;
  Self* previous = nullptr;
  bool listed = false;
};

// Waiters by value, then arrival, as a list of nodes that they own, so that moving a timeline allocates
// nothing. Not synchronised, but for any().
template <typename W>
class WaiterList {
 public:
  bool any() const { return count_.load() != 0; }
  W* first() const { return first_; }
  void insert(W& waiter) {
    W* before = last_;  // most wait for something later than all others, or sooner
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
  // Takes those in front for whom `is_settled` holds, as a chain by `next`; null: nobody.
  template <typename IsSettled>
  W* take_front(IsSettled is_settled) {
    W* const settled = first_;
    W* last = nullptr;
    uint32_t count = 0;
    for (; first_ && is_settled(*first_); ++count) {
      first_->listed = false;
      last = std::exchange(first_, first_->next);
    }
    if (!last) return nullptr;
    count_.fetch_sub(count);
    last->next = nullptr;
    (first_ ? first_->previous : last_) = nullptr;
    return settled;
  }

 private:
  W* first_ = nullptr;
  W* last_ = nullptr;
  std::atomic<uint32_t> count_ = 0;
};

// Tells a chain of waiters. Without locks held.
template <typename W, typename List>
void settle_all(W* first, const Status& failure, List& due) {
  while (first) {
    W* const waiter = std::exchange(first, first->next);  // before it may be freed
    waiter->settled(*waiter, failure, due);
  }
}

enum class Progress : uint8_t { pending, reached, failed };

// Where subscriptions are stored, if a driver does not say otherwise.
struct FromHeap {
  void* take(size_t size) const { return ::operator new(size); }
  void give(void* memory, size_t size) const noexcept { ::operator delete(memory, size); }
};

// A semaphore: a value that only grows, or a failure that stays; and those who wait for it. Nobody waits for
// most timelines: moving one takes the lock only where somebody does. Moving one makes things due, held queue
// work and calls of subscribers, which are handed back in a list. Thread-safe.
//
// Timeline below is the usual one. A driver whose timelines can do more derives its own class from this:
// `Self` is that class, `W` derives from WaiterLink, `D` from DueLink, `List` is its list of what is due, and
// `Store` (a small value) gives and takes the memory of subscriptions. What Self declares anew, watch() and
// change(), is used here too.
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
  // What a program that asks now is told.
  uint64_t seen_value() const { return value(); }
  // A failure is seen before a value [R84]. Takes no lock.
  Progress progress(uint64_t wanted) const {
    if (failed_.load(std::memory_order_acquire)) return Progress::failed;
    return value() >= wanted ? Progress::reached : Progress::pending;
  }
  Status failure() const {  // empty while it has not failed
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  // From the host: INVALID_ARGUMENT where `to` is not larger than the value now. What has failed stays
  // failed.
  Result<> signal(uint64_t to, List& due) {
    if (advance(to, due) || failed_.load(std::memory_order_acquire)) return {};
    return refusal(to, value());
  }
  // As queue work signals: no effect where the value is not larger or the timeline has failed [R64]. Whether
  // it moved.
  bool advance(uint64_t to, List& due) {
    if (failed_.load(std::memory_order_acquire) || !grow(to)) return false;
    if (!waiters_.any()) return true;
    W* settled = nullptr;
    {
      const std::lock_guard lock(mutex_);
      settled = take_settled();
    }
    settle_all(settled, Status(), due);  // what has failed has no waiters left
    return true;
  }
  void fail(const Status& failure, List& due) {
    W* settled = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (failed_.load(std::memory_order_relaxed)) return;
      failure_ = failure;
      failed_.store(true, std::memory_order_release);
      settled = take_settled();
    }
    settle_all(settled, failure, due);
  }

  // Puts the waiter on the list; false, and nothing done, where there is nothing to wait for.
  bool watch(W& waiter) {
    const std::lock_guard lock(mutex_);
    return list(waiter);
  }
  // Takes it off; false where its `settled` was or is being called.
  bool unwatch(W& waiter) {
    const std::lock_guard lock(mutex_);
    if (!waiter.listed) return false;
    waiters_.remove(waiter);
    return true;
  }

  // A call of the host's; where there is nothing to wait for, it is due at once.
  void subscribe(uint64_t value, halyard_subscriber_fn function, void* user, List& due) {
    auto* const made = new (store_.take(sizeof(Subscriber))) Subscriber(store_, value, function, user);
    if (!static_cast<Self*>(this)->watch(*made)) Subscriber::is_settled(*made, failure(), due);
  }
  // Whether it is taken back; false: it was or is being called.
  bool unsubscribe(halyard_subscriber_fn function, void* user) {
    const std::lock_guard lock(mutex_);
    for (W* waiter = waiters_.first(); waiter; waiter = waiter->next) {
      if (waiter->settled != Subscriber::is_settled) continue;
      auto* const found = static_cast<Subscriber*>(waiter);
      if (found->function != function || found->user != user) continue;
      waiters_.remove(*found);
      found->destroy();
      return true;
    }
    return false;
  }

 protected:
  // Who moves the timeline writes the value, then looks for waiters; who waits is counted, then looks at the
  // value: one of them sees the other.
  static bool change(std::atomic<uint64_t>& value, uint64_t& expected, uint64_t to) {
    return value.compare_exchange_strong(expected, to, std::memory_order_seq_cst, std::memory_order_relaxed);
  }
  static Failure refusal(uint64_t to, uint64_t now) {
    return {HALYARD_INVALID_ARGUMENT, "cannot signal value " + std::to_string(to) + ": the semaphore is at " +
                                          std::to_string(now) + " and its value can only grow"};
  }
  // Under the lock.
  bool list(W& waiter) {
    waiters_.insert(waiter);
    if (!failed_.load(std::memory_order_relaxed) && value_.load() < waiter.value) return true;
    waiters_.remove(waiter);
    return false;
  }
  W* take_settled() {
    return waiters_.take_front(
        [this](const W& waiter) { return progress(waiter.value) != Progress::pending; });
  }

  const Services& services_;
  std::atomic<uint64_t> value_;
  std::atomic<bool> failed_ = false;  // written under the lock
  mutable std::mutex mutex_;          // of what follows
  Status failure_;
  WaiterList<W> waiters_;

 private:
  struct Subscriber final : W, D {
    Subscriber(Store from, uint64_t wanted, halyard_subscriber_fn called, void* argument)
        : store(from), function(called), user(argument) {
      W::value = wanted;
      W::settled = is_settled;
      D::run = call;
    }
    static void is_settled(W& waiter, Status failure, List& due) {
      auto& self = static_cast<Subscriber&>(waiter);
      self.outcome = std::move(failure);
      due.push_call(self);
    }
    static void call(D& due_call, List&) {
      auto& self = static_cast<Subscriber&>(due_call);
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

  // False where the value is there already.
  bool grow(uint64_t to) {
    uint64_t now = value_.load(std::memory_order_relaxed);
    while (now < to)
      if (Self::change(value_, now, to)) return true;
    return false;
  }

  [[no_unique_address]] const Store store_;
};

struct Waiter : WaiterLink<Waiter, DueList> {};

class Timeline final : public BasicTimeline<Timeline, Waiter, Due, DueList> {
 public:
  using BasicTimeline::BasicTimeline;

 private:
  friend BasicTimeline;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_TIMELINE_HPP_
