// Of the kit (halyard/driver.hpp): a thread of the host's that waits for timelines, and queue work that does.
#ifndef HALYARD_DRIVER_WAITING_HPP_
#define HALYARD_DRIVER_WAITING_HPP_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "halyard/driver/timeline.hpp"

namespace halyard::kit {

using Timepoints = std::span<const halyard_timepoint_t>;

template <typename T>
T& timeline_of(const halyard_timepoint_t& point) {
  return *reinterpret_cast<T*>(point.semaphore);
}

// How far timepoints are: how many are reached, and the failure of the first that has failed, which is looked
// for first [R84].
struct Standing {
  size_t reached = 0;
  bool pending = false;  // somebody has to wait
  Status failure;
};

template <typename T>
Standing look_at(Timepoints points) {
  Standing standing;
  for (const halyard_timepoint_t& point : points) {
    const Progress progress = timeline_of<T>(point).progress(point.value);
    if (progress == Progress::failed) return {standing.reached, false, timeline_of<T>(point).failure()};
    if (progress == Progress::reached) {
      ++standing.reached;
    } else {
      standing.pending = true;
    }
  }
  return standing;
}

// How many must be reached.
inline size_t needed_of(Timepoints points, bool any) {
  return any ? std::min<size_t>(points.size(), 1) : points.size();
}

template <typename T>
bool is_over(Timepoints points, bool any) {
  const Standing standing = look_at<T>(points);
  return standing.failure || standing.reached >= needed_of(points, any);
}

// What a wait that is over came to.
inline Status outcome_of(const Services& services, Standing standing, Timepoints points, bool any) {
  if (standing.failure || standing.reached >= needed_of(points, any)) return std::move(standing.failure);
  return {services, HALYARD_DEADLINE_EXCEEDED,
          "the deadline passed with " + std::to_string(standing.reached) + " of " +
              std::to_string(points.size()) + " timepoints reached"};
}

// Blocks until told by the timelines.
template <typename T>
Standing block(Timepoints points, bool any, int64_t deadline_ns) {
  // Shared with the timelines: whoever settles a wait may come after the thread has left.
  struct Blocked {
    struct Wait : T::Waiter {
      std::shared_ptr<Blocked> owner;  // while on a list, or being settled
    };
    std::mutex mutex;
    std::condition_variable changed;
    Standing standing;
    std::vector<Wait> waits;
    void settle(Status with) {
      {
        const std::lock_guard lock(mutex);
        if (!with) {
          ++standing.reached;
        } else if (!standing.failure) {
          standing.failure = std::move(with);
        }
      }
      changed.notify_all();
    }
  };
  const auto blocked = std::make_shared<Blocked>();
  blocked->waits = std::vector<typename Blocked::Wait>(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    typename Blocked::Wait& wait = blocked->waits[i];
    wait.value = points[i].value;
    wait.owner = blocked;
    wait.settled = [](typename T::Waiter& waiter, Status failure, auto&) {
      const std::shared_ptr<Blocked> owner = std::move(static_cast<typename Blocked::Wait&>(waiter).owner);
      owner->settle(std::move(failure));
    };
    if (timeline_of<T>(points[i]).watch(wait)) continue;
    wait.owner.reset();
    blocked->settle(timeline_of<T>(points[i]).failure());
  }
  const size_t needed = needed_of(points, any);
  const auto over = [&] { return blocked->standing.failure || blocked->standing.reached >= needed; };
  std::unique_lock lock(blocked->mutex);
  if (deadline_ns == HALYARD_WAIT_FOREVER) {
    blocked->changed.wait(lock, over);
  } else {  // CLOCK_MONOTONIC, as std::chrono::steady_clock
    blocked->changed.wait_until(
        lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns)), over);
  }
  Standing standing = blocked->standing;
  lock.unlock();
  for (size_t i = 0; i < points.size(); ++i)
    if (timeline_of<T>(points[i]).unwatch(blocked->waits[i])) blocked->waits[i].owner.reset();
  return standing;
}

// Blocks until all, or any, of the timepoints are reached. As semaphore_wait in driver.h.
template <typename T>
Status wait_for(const Services& services, Timepoints points, bool any, int64_t deadline_ns) {
  Standing standing = look_at<T>(points);
  if (!standing.failure && standing.reached < needed_of(points, any) && deadline_ns != 0)
    standing = block<T>(points, any, deadline_ns);
  return outcome_of(services, std::move(standing), points, any);
}

// Queue work that is held until its waits are reached or one of them has failed, which does not wait for the
// others [R62]. It counts who still refers to it: each wait that is not settled, and the work itself. `Self`
// derives from this; `T` is the class of its timelines. Self has
//   void is_due(List&)   called once: from then on any thread may do the work
//   void dispose()       called once: nobody refers to it any more
template <typename Self, typename T, typename List>
class Held {
 public:
  struct Wait : T::Waiter {
    Self* held = nullptr;
    T* timeline = nullptr;
  };

  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 protected:
  Held() = default;
  ~Held() = default;

  // Before anything else: one of `waits` for each of `points`. What was used before is as new.
  void prepare(std::span<Wait> waits, Timepoints points) {
    for (size_t i = 0; i < waits.size(); ++i) {
      waits[i].value = points[i].value;
      waits[i].settled = wait_settled;
      waits[i].held = static_cast<Self*>(this);
      waits[i].timeline = &timeline_of<T>(points[i]);
    }
    pending_ = waits.size();
    is_complete_ = false;
    is_claimed_ = false;
    failure_ = Status();
    references_.store(waits.size() + 1, std::memory_order_relaxed);
  }
  // Begins to wait. From then on any thread may make it due and do it: it may not be touched any more.
  void hold(std::span<Wait> waits, List& due) {
    for (Wait& wait : waits)
      if (!wait.timeline->watch(wait)) wait_settled(wait, wait.timeline->failure(), due);
    bool is_due = false;
    {
      const std::lock_guard lock(mutex_);
      is_complete_ = true;
      is_due = claim();
    }
    if (is_due) static_cast<Self*>(this)->is_due(due);
  }
  // It is due: the failure of the wait that failed first. The other waits are of no interest then: they are
  // given up, and leave() must be told of them, by the number in `unwatched`.
  Status take_failure(std::span<Wait> waits, size_t& unwatched) {
    Status failure;
    {
      const std::lock_guard lock(mutex_);
      failure = std::move(failure_);
      failure_ = Status();
    }
    unwatched = 0;
    if (failure)
      for (Wait& wait : waits) unwatched += wait.timeline->unwatch(wait);
    return failure;
  }
  void leave(size_t count) {
    if (references_.fetch_sub(count, std::memory_order_acq_rel) == count) static_cast<Self*>(this)->dispose();
  }

 private:
  static void wait_settled(typename T::Waiter& waiter, Status failure, List& due) {
    Self& self = *static_cast<Wait&>(waiter).held;
    Held& held = self;
    bool is_due = false;
    {
      const std::lock_guard lock(held.mutex_);
      --held.pending_;
      if (failure && !held.failure_) held.failure_ = std::move(failure);
      is_due = held.claim();
    }
    if (is_due) self.is_due(due);
    held.leave(1);
  }
  // Under the lock: whether the work became due now.
  bool claim() {
    if (!is_complete_ || is_claimed_ || (pending_ > 0 && !failure_)) return false;
    return is_claimed_ = true;
  }

  std::mutex mutex_;          // of what follows
  size_t pending_ = 0;        // waits that are not settled
  bool is_complete_ = false;  // all waits are watched
  bool is_claimed_ = false;   // it is being done, or has been
  Status failure_;            // of the first wait that failed
  std::atomic<size_t> references_ = 0;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_WAITING_HPP_
