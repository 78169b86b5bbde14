// Of the kit (halyard/driver.hpp): blocking a host thread until timelines advance, and held queue work.
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

// The state of a set of timepoints: how many are reached, and the failure of the first one that has failed. A
// failure takes precedence over values [R84].
struct WaitState {
  size_t reached = 0;
  bool pending = false;  // at least one is neither reached nor failed
  Status failure;
};

template <typename T>
WaitState look_at(Timepoints points) {
  WaitState state;
  for (const halyard_timepoint_t& point : points) {
    const Progress progress = timeline_of<T>(point).progress(point.value);
    if (progress == Progress::failed) return {state.reached, false, timeline_of<T>(point).failure()};
    if (progress == Progress::reached) {
      ++state.reached;
    } else {
      state.pending = true;
    }
  }
  return state;
}

// The number of timepoints that must be reached.
inline size_t needed_of(Timepoints points, bool any) {
  return any ? std::min<size_t>(points.size(), 1) : points.size();
}

template <typename T>
bool is_over(Timepoints points, bool any) {
  const WaitState state = look_at<T>(points);
  return state.failure || state.reached >= needed_of(points, any);
}

// The result of a wait that is over.
inline Status outcome_of(const Services& services, WaitState state, Timepoints points, bool any) {
  if (state.failure || state.reached >= needed_of(points, any)) return std::move(state.failure);
  return {services, HALYARD_DEADLINE_EXCEEDED,
          "the deadline passed with " + std::to_string(state.reached) + " of " +
              std::to_string(points.size()) + " timepoints reached"};
}

// Blocks until the timelines notify the thread.
template <typename T>
WaitState block(Timepoints points, bool any, int64_t deadline_ns) {
  // Shared with the timelines: one of them may complete a wait after the thread has returned.
  struct Blocked {
    struct Wait : T::Waiter {
      std::shared_ptr<Blocked> owner;  // set while listed by a timeline or being completed
    };
    std::mutex mutex;
    std::condition_variable changed;
    WaitState state;
    std::vector<Wait> waits;
    void complete(Status with) {
      {
        const std::lock_guard lock(mutex);
        if (!with) {
          ++state.reached;
        } else if (!state.failure) {
          state.failure = std::move(with);
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
    wait.completed = [](typename T::Waiter& waiter, Status failure, auto&) {
      const std::shared_ptr<Blocked> owner = std::move(static_cast<typename Blocked::Wait&>(waiter).owner);
      owner->complete(std::move(failure));
    };
    if (timeline_of<T>(points[i]).watch(wait)) continue;
    wait.owner.reset();
    blocked->complete(timeline_of<T>(points[i]).failure());
  }
  const size_t needed = needed_of(points, any);
  const auto over = [&] { return blocked->state.failure || blocked->state.reached >= needed; };
  std::unique_lock lock(blocked->mutex);
  if (deadline_ns == HALYARD_WAIT_FOREVER) {
    blocked->changed.wait(lock, over);
  } else {  // steady_clock is CLOCK_MONOTONIC
    blocked->changed.wait_until(
        lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns)), over);
  }
  WaitState state = blocked->state;
  lock.unlock();
  for (size_t i = 0; i < points.size(); ++i)
    if (timeline_of<T>(points[i]).unwatch(blocked->waits[i])) blocked->waits[i].owner.reset();
  return state;
}

// Blocks until all, or any, of the timepoints are reached, like semaphore_wait in driver.h.
template <typename T>
Status wait_for(const Services& services, Timepoints points, bool any, int64_t deadline_ns) {
  WaitState state = look_at<T>(points);
  if (!state.failure && state.reached < needed_of(points, any) && deadline_ns != 0)
    state = block<T>(points, any, deadline_ns);
  return outcome_of(services, std::move(state), points, any);
}

// Queue work that is held until all its waits are reached or one has failed; a failed wait does not wait for
// the others [R62]. The work counts its references: one for each wait that has not completed, and one for the
// work itself. `Self` derives from this class; `T` is the class of its timelines. Self has
//   void on_ready(List&)   called once: from now on any thread may run the work
//   void dispose()         called once: no reference is left
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

  // Must be called first. `waits` has one element for each of `points`. Resets an object that is reused.
  void prepare(std::span<Wait> waits, Timepoints points) {
    for (size_t i = 0; i < waits.size(); ++i) {
      waits[i].value = points[i].value;
      waits[i].completed = wait_completed;
      waits[i].held = static_cast<Self*>(this);
      waits[i].timeline = &timeline_of<T>(points[i]);
    }
    pending_ = waits.size();
    all_watched_ = false;
    is_claimed_ = false;
    failure_ = Status();
    references_.store(waits.size() + 1, std::memory_order_relaxed);
  }
  // Starts to wait. From now on any thread may make the work ready and run it, so the caller must not touch
  // the work again.
  void hold(std::span<Wait> waits, List& ready) {
    for (Wait& wait : waits)
      if (!wait.timeline->watch(wait)) wait_completed(wait, wait.timeline->failure(), ready);
    bool is_ready = false;
    {
      const std::lock_guard lock(mutex_);
      all_watched_ = true;
      is_ready = claim();
    }
    if (is_ready) static_cast<Self*>(this)->on_ready(ready);
  }
  // For work that is ready: returns the failure of the wait that failed first, if any. Then the remaining
  // waits are cancelled, and the caller must pass their number, `unwatched`, to leave().
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
  static void wait_completed(typename T::Waiter& waiter, Status failure, List& ready) {
    Self& self = *static_cast<Wait&>(waiter).held;
    Held& held = self;
    bool is_ready = false;
    {
      const std::lock_guard lock(held.mutex_);
      --held.pending_;
      if (failure && !held.failure_) held.failure_ = std::move(failure);
      is_ready = held.claim();
    }
    if (is_ready) self.on_ready(ready);
    held.leave(1);
  }
  // Called under the lock. Returns true if the work became ready with this call.
  bool claim() {
    if (!all_watched_ || is_claimed_ || (pending_ > 0 && !failure_)) return false;
    return is_claimed_ = true;
  }

  std::mutex mutex_;          // guards the fields below
  size_t pending_ = 0;        // waits that have not completed
  bool all_watched_ = false;  // every wait is reached, failed or watched
  bool is_claimed_ = false;   // the work is running, or has run
  Status failure_;            // of the wait that failed first
  std::atomic<size_t> references_ = 0;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_WAITING_HPP_
