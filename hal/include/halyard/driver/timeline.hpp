// Of the kit (halyard/driver.hpp): timelines, those who wait for them, and what becomes due when they move.
#ifndef HALYARD_DRIVER_TIMELINE_HPP_
#define HALYARD_DRIVER_TIMELINE_HPP_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "halyard/driver/failure.hpp"

namespace halyard::kit {

class DueList;

// Something to do, as a link of a list. `run` may free it.
struct Due {
  void (*run)(Due& self, DueList& due) = nullptr;
  Due* next = nullptr;
};

class DueQueue {
 public:
  bool empty() const { return !first_; }
  void push(Due& due) {
    due.next = nullptr;
    (last_ ? last_->next : first_) = &due;
    last_ = &due;
  }
  Due* pop() {  // null where empty
    Due* const due = first_;
    if (due) first_ = due->next;
    if (!first_) last_ = nullptr;
    return due;
  }

 private:
  Due* first_ = nullptr;
  Due* last_ = nullptr;
};

// What has become due while timelines moved, for whoever moved them to see to once all locks are given back
// [R32]. So a chain of work, however long, is a loop and not a recursion.
class DueList {
 public:
  DueList() = default;
  DueList(const DueList&) = delete;
  DueList& operator=(const DueList&) = delete;
  ~DueList() { run(); }

  void push_work(Due& due) { work_.push(due); }
  void push_call(Due& due) { calls_.push(due); }
  // Does all there is, and what becomes due by it; work before calls of the host.
  void run() {
    do {
      run_work();
      if (Due* const call = calls_.pop()) call->run(*call, *this);
    } while (!work_.empty() || !calls_.empty());
  }
  // For a thread that leaves calls to another: the work alone, and then each call.
  void run_work() {
    while (Due* const work = work_.pop()) work->run(*work, *this);
  }
  Due* pop_call() { return calls_.pop(); }  // null: none

 private:
  DueQueue work_;
  DueQueue calls_;
};

// Somebody who waits for `value`. `settled` is called once, without locks: the value is reached (empty
// status), or the timeline has failed. It may free the waiter.
struct Waiter {
  uint64_t value = 0;
  void (*settled)(Waiter& waiter, Status failure, DueList& due) = nullptr;
  // The timeline's, under its lock:
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  bool listed = false;
};

enum class Progress : uint8_t { pending, reached, failed };

// A semaphore: a value that only grows, or a failure that stays; and those who wait for it, sorted by value,
// as a list of nodes that the waiters own, so that moving the timeline allocates nothing. Thread-safe.
class Timeline {
 public:
  Timeline(const Services& services, uint64_t initial) : services_(services), value_(initial) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  const Services& services() const { return services_; }
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
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
  Result<> signal(uint64_t to, DueList& due) {
    if (advance(to, due) || progress(0) == Progress::failed) return {};
    return Failure{HALYARD_INVALID_ARGUMENT, "cannot signal value " + std::to_string(to) +
                                                 ": the semaphore is at " + std::to_string(value()) +
                                                 " and its value can only grow"};
  }
  // As queue work signals: no effect where the value is not larger or the timeline has failed [R64]. Whether
  // it moved.
  bool advance(uint64_t to, DueList& due) {
    Waiter* settled = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (failed_.load(std::memory_order_relaxed) || value_.load(std::memory_order_relaxed) >= to)
        return false;
      value_.store(to, std::memory_order_release);
      settled = take_settled();
    }
    settle_all(settled, {}, due);
    return true;
  }
  void fail(const Status& failure, DueList& due) {
    Waiter* settled = nullptr;
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
  bool watch(Waiter& waiter) {
    const std::lock_guard lock(mutex_);
    if (progress(waiter.value) != Progress::pending) return false;
    Waiter* before = last_;  // most wait for something later than all others
    while (before && before->value > waiter.value) before = before->previous;
    waiter.previous = before;
    waiter.next = before ? before->next : first_;
    (waiter.previous ? waiter.previous->next : first_) = &waiter;
    (waiter.next ? waiter.next->previous : last_) = &waiter;
    return waiter.listed = true;
  }
  // Takes it off; false where its `settled` was or is being called.
  bool unwatch(Waiter& waiter) {
    const std::lock_guard lock(mutex_);
    if (!waiter.listed) return false;
    unlink(waiter);
    return true;
  }

  // A call of the host's; where there is nothing to wait for, it is due at once.
  void subscribe(uint64_t value, halyard_subscriber_fn function, void* user, DueList& due) {
    auto* const made = new Subscriber(value, function, user);
    if (!watch(*made)) Subscriber::is_settled(*made, failure(), due);
  }
  // Whether it is taken back; false: it was or is being called.
  bool unsubscribe(halyard_subscriber_fn function, void* user) {
    std::unique_ptr<Subscriber> found;
    const std::lock_guard lock(mutex_);
    for (Waiter* waiter = first_; waiter && !found; waiter = waiter->next) {
      if (waiter->settled != Subscriber::is_settled) continue;
      auto* const candidate = static_cast<Subscriber*>(waiter);
      if (candidate->function == function && candidate->user == user) found.reset(candidate);
    }
    if (found) unlink(*found);
    return found != nullptr;
  }

 private:
  struct Subscriber : Waiter, Due {
    Subscriber(uint64_t wanted, halyard_subscriber_fn called, void* argument)
        : function(called), user(argument) {
      value = wanted;
      settled = is_settled;
      run = [](Due& self, DueList&) {
        const std::unique_ptr<Subscriber> subscriber(static_cast<Subscriber*>(&self));
        subscriber->function(subscriber->user, std::move(subscriber->outcome).release());
      };
    }
    static void is_settled(Waiter& waiter, Status failure, DueList& due) {
      auto& self = static_cast<Subscriber&>(waiter);
      self.outcome = std::move(failure);
      due.push_call(self);
    }
    halyard_subscriber_fn function;
    void* user;
    Status outcome;
  };

  // Under the lock: unlinks those in front who have nothing left to wait for.
  Waiter* take_settled() {
    Waiter* const settled = first_;
    Waiter* last = nullptr;
    while (first_ && progress(first_->value) != Progress::pending) {
      first_->listed = false;
      last = std::exchange(first_, first_->next);
    }
    if (!last) return nullptr;
    last->next = nullptr;
    (first_ ? first_->previous : last_) = nullptr;
    return settled;
  }
  void unlink(Waiter& waiter) {
    (waiter.previous ? waiter.previous->next : first_) = waiter.next;
    (waiter.next ? waiter.next->previous : last_) = waiter.previous;
    waiter.listed = false;
  }
  static void settle_all(Waiter* first, const Status& failure, DueList& due) {
    while (first) {
      Waiter* const waiter = std::exchange(first, first->next);  // before it may be freed
      waiter->settled(*waiter, failure, due);
    }
  }

  const Services& services_;
  std::atomic<uint64_t> value_;  // both written under the lock
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  // of what follows
  Status failure_;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

// Blocks until all, or any, of the timepoints are reached; a failed one is looked for first [R84].
inline Status wait_for(const Services& services, std::span<const halyard_timepoint_t> points, bool any,
                       int64_t deadline_ns) {
  struct Blocked {
    struct Wait : Waiter {
      std::shared_ptr<Blocked> owner;  // whoever settles a wait may come after the thread has left
    };
    std::mutex mutex;
    std::condition_variable changed;
    size_t reached = 0;
    Status failure;
    std::vector<Wait> waits;
    void settle(Status with) {
      const std::lock_guard lock(mutex);
      if (!with) {
        ++reached;
      } else if (!failure) {
        failure = std::move(with);
      }
      changed.notify_all();
    }
  };
  const auto timeline = [&](size_t i) -> Timeline& {
    return *reinterpret_cast<Timeline*>(points[i].semaphore);
  };
  for (size_t i = 0; i < points.size(); ++i)
    if (Status failure = timeline(i).failure()) return failure;

  const auto blocked = std::make_shared<Blocked>();
  blocked->waits.resize(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    Blocked::Wait& wait = blocked->waits[i];
    wait.value = points[i].value;
    wait.owner = blocked;
    wait.settled = [](Waiter& waiter, Status failure, DueList&) {
      const std::shared_ptr<Blocked> owner = std::move(static_cast<Blocked::Wait&>(waiter).owner);
      owner->settle(std::move(failure));
    };
    if (timeline(i).watch(wait)) continue;
    wait.owner.reset();
    blocked->settle(timeline(i).failure());
  }
  const size_t needed = any ? std::min<size_t>(points.size(), 1) : points.size();
  const auto over = [&] { return blocked->failure || blocked->reached >= needed; };
  std::unique_lock lock(blocked->mutex);
  if (deadline_ns == HALYARD_WAIT_FOREVER) {
    blocked->changed.wait(lock, over);
  } else {  // CLOCK_MONOTONIC, as std::chrono::steady_clock
    blocked->changed.wait_until(
        lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns)), over);
  }
  Status failure = blocked->failure;
  const size_t reached = blocked->reached;
  lock.unlock();
  for (size_t i = 0; i < points.size(); ++i)
    if (timeline(i).unwatch(blocked->waits[i])) blocked->waits[i].owner.reset();
  if (failure || reached >= needed) return failure;
  return {services,
          Failure{HALYARD_DEADLINE_EXCEEDED, "the deadline passed with " + std::to_string(reached) + " of " +
                                                 std::to_string(points.size()) + " timepoints reached"}};
}

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_TIMELINE_HPP_
