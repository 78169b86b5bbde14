// Wait: when everything that is waited for has happened, or the first part of it has failed, a blocked thread
// goes on or something is done. An invocation has one, begun anew for each wait of its calls; a set of fences
// makes one (hal/queue/wait.h). Whoever makes a part happen calls the wait, or holds a Wakeup for it.
// Thread-safe.
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

  // Called at the end of each wait that nobody blocks for, on the thread that ends it and under the lock: it
  // must neither block nor call the wait. The hook before is not running any more when set_hook() returns.
  struct Hook {
    void (*function)(void* user) = nullptr;
    void* user = nullptr;
  };
  void set_hook(Hook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = hook;
  }

  // Begins a wait for `parts` things. Its number, which tells it from earlier ones.
  uint64_t begin(uint32_t parts = 1);
  // From now on, the end of this wait calls the hook. False: it has ended already, and calls nothing.
  bool settle();
  // Ends the wait without doing anything: what still happens has no effect. False: it has ended already. Free
  // where no wait is under way, as in most calls: only one thread at a time begins and abandons waits.
  bool abandon();
  bool waiting() const { return waiting_; }

  // Blocks until the wait has ended or the deadline has come. Whether it has ended.
  bool block(const Deadline& deadline);
  // Why it has ended, once it has: OK, or the first failure.
  Status failure() const { return failure_; }

  // A part has happened, or, with a failure, never will. True: that has ended the wait, and what is to be
  // done then is up to the caller.
  bool arrive(Status status = {}) noexcept { return arrive_at(kAny, std::move(status), false); }
  // The same, of the wait with this number only.
  bool arrive(uint64_t number, Status status = {}) noexcept {
    return arrive_at(number, std::move(status), false);
  }
  // Ends the wait that is under way, whatever is missing.
  void end() noexcept { arrive_at(kAny, {}, true); }

 protected:
  // Of another type of object, and begun.
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
  bool settled_ = false;
  std::atomic<bool> waiting_ = false;  // written under the lock
};

// The right to tell one wait that a part of it has happened, which may come late or never. Copies are the
// same; an empty one tells nobody.
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
