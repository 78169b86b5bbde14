// Wait: ends when all its parts have arrived or the first one has failed, and then unblocks a thread or calls
// a hook. An invocation has one Wait and begins it again for each wait of its calls; a set of fences creates
// one (hal/queue/wait.h). The signaller of a part calls the Wait, or holds a Wakeup for it. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/object.h"
#include "base/status.h"

namespace halyard {

class Wait : public Object {
 public:
  static const ObjectType kType;                      // "wait"
  using Clock = std::chrono::steady_clock;            // CLOCK_MONOTONIC
  using Deadline = std::optional<Clock::time_point>;  // none: no limit

  Wait() : Object(&kType) {}
  ~Wait() = default;

  // Called at the end of each wait that blocks no thread, on the thread that ends it and under the lock. It
  // must neither block nor call the wait. When set_hook() returns, the previous hook is not running.
  struct Hook {
    void (*function)(void* user) = nullptr;
    void* user = nullptr;
  };
  void set_hook(Hook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = hook;
  }

  // Begins a wait for `parts` parts. Returns its number, which distinguishes it from earlier waits.
  uint64_t begin(uint32_t parts = 1);
  // Lets the end of this wait call the hook. Returns false if it has already ended, without calling the hook.
  bool arm();
  // Ends the wait silently, so that later arrivals have no effect. Returns false if it has already ended.
  // Takes no lock if no wait is in progress, as in most calls; this is safe because only one thread at a time
  // begins and abandons waits.
  bool abandon();
  bool waiting() const { return waiting_; }

  // Blocks until the wait ends, or until the deadline. Returns whether the wait has ended.
  bool block(const Deadline& deadline);
  // The result of an ended wait: OK, or the first failure.
  Status failure() const { return failure_; }

  // Reports that a part has arrived or, with a failure, never will. Returns true if this ended the wait; the
  // caller must then do the follow-up work.
  bool arrive(Status status = {}) noexcept { return arrive_at(kAny, std::move(status), false); }
  // The same for the wait with this number only.
  bool arrive(uint64_t number, Status status = {}) noexcept {
    return arrive_at(number, std::move(status), false);
  }
  // Ends the current wait, regardless of missing parts.
  void end() noexcept { arrive_at(kAny, {}, true); }

 protected:
  // For derived types of objects; the wait has begun.
  Wait(const ObjectType* type, uint32_t parts) : Object(type), missing_(parts), waiting_(true) {}

 private:
  static constexpr uint64_t kAny = 0;
  bool arrive_at(uint64_t number, Status status, bool ends) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  Hook hook_;
  Status failure_;
  uint64_t number_ = 0;
  uint32_t missing_ = 0;  // parts
  bool armed_ = false;
  std::atomic<bool> waiting_ = false;  // written under the lock
};

// Reports the arrival of a part to one wait, perhaps too late or never. All copies report to the same wait.
// An empty Wakeup has no effect.
class Wakeup {
 public:
  Wakeup() = default;
  Wakeup(Ref<Wait> wait, uint64_t number) : wait_(std::move(wait)), number_(number) {}
  void wake() const {
    if (wait_) wait_->arrive(number_);
  }

 private:
  Ref<Wait> wait_;
  uint64_t number_ = 0;
};

}  // namespace halyard
