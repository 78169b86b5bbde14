// Semaphore: a timeline. A value that only grows, or a failure that stays; and those who wait for it, as a
// list of nodes that the waiters own, so that moving the timeline allocates nothing.
// Nobody waits for most timelines: moving one takes the lock only where somebody does.
//
// Moving a timeline makes things due: held queue work, and calls of subscribers. They are not done in there
// but handed back in a DueList. So a subscriber that is slow delays nobody who waits for the same timeline.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "due.h"
#include "node_cache.h"
#include "status.h"

namespace halyard::local {

// Somebody who waits for `value`. `settled` is called once, without locks: the value is reached (empty
// status) or the timeline has failed. It may free the waiter.
struct Waiter {
  uint64_t value = 0;
  void (*settled)(Waiter& waiter, HostStatus failure, DueList& due) = nullptr;
  // The semaphore's, under its lock:
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  bool listed = false;
};

enum class Progress : uint8_t { pending, reached, failed };

class Semaphore {
 public:
  Semaphore(const Services& services, NodeCache& nodes, uint64_t initial)
      : services_(services), nodes_(nodes), value_(initial) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  const Services& services() const { return services_; }
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  // Takes no lock. A failure is seen before a value.
  Progress progress(uint64_t value) const {
    if (failed_.load(std::memory_order_acquire)) return Progress::failed;
    return this->value() >= value ? Progress::reached : Progress::pending;
  }
  HostStatus failure() const;  // empty while it has not failed

  // INVALID_ARGUMENT where `value` is not larger than the value now.
  Result<> signal(uint64_t value, DueList& due);
  // As queue work signals: no effect where the value is not larger or the timeline has failed (spec ruling
  // 9).
  void advance(uint64_t value, DueList& due);
  void fail(const HostStatus& failure, DueList& due);

  // Puts the waiter on the list; false, and nothing done, where there is nothing to wait for.
  bool watch(Waiter& waiter);
  // Takes it off; false where its `settled` was or is being called.
  bool unwatch(Waiter& waiter);

  // Where there is nothing to wait for, the call is due at once.
  void subscribe(uint64_t value, halyard_subscriber_fn subscriber, void* user, DueList& due);
  bool unsubscribe(halyard_subscriber_fn subscriber, void* user);

 private:
  bool grow(uint64_t value);
  void settle_reached(DueList& due);
  Waiter* take_settled();
  void link(Waiter& waiter);
  void unlink(Waiter& waiter);

  const Services& services_;
  NodeCache& nodes_;
  // Who moves the timeline writes the value, then looks for waiters; who waits is counted, then looks at the
  // value: one of them sees the other.
  std::atomic<uint64_t> value_;
  std::atomic<uint32_t> waiters_ = 0;  // listed; written under the lock
  std::atomic<bool> failed_ = false;   // written under the lock
  mutable std::mutex mutex_;           // of what follows
  HostStatus failure_;
  Waiter* first_ = nullptr;  // waiters by value, then arrival
  Waiter* last_ = nullptr;
};

// Whether all, or any, of the timepoints are reached, or one has failed.
bool is_over(std::span<const halyard_timepoint_t> timepoints, bool any);

// Blocks until all, or any, of the timepoints are reached; a failed one is looked for first. `deadline` as in
// driver.h.
HostStatus wait_for(const Services& services, std::span<const halyard_timepoint_t> timepoints, bool any,
                    int64_t deadline_ns);

}  // namespace halyard::local

struct halyard_driver_semaphore final : halyard::local::Semaphore {
  using Semaphore::Semaphore;
};
