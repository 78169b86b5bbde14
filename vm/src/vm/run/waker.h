// Waker: how an invocation that waits learns that it can go on. The invocation begins waits; whoever has to
// end one holds a Wakeup for it, which may come late or never and then has no effect. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/object.h"

namespace halyard::vm {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;  // none: no limit

class Waker final : public ObjectOf<Waker> {
 public:
  static const ObjectType kType;

  // Called when a wait ends, on the thread that ends it. It may hand the invocation to a thread that resumes
  // it; it must not resume it itself, nor drop it.
  struct Hook {
    void (*function)(void* user) = nullptr;
    void* user = nullptr;
  };
  void set_hook(Hook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = hook;
  }

  uint64_t begin_wait() {
    const std::lock_guard lock(mutex_);
    waiting_ = true;
    settled_ = false;
    return ++wait_;
  }
  // The invocation has come to rest. Whether it still waits; then, and only then, the hook will be called.
  bool settle() {
    const std::lock_guard lock(mutex_);
    settled_ = true;
    return waiting_;
  }
  // The wait is over without having been ended by anybody. Most calls never wait, and take no lock for it:
  // only the invocation itself begins waits.
  void leave_wait() {
    if (!waiting_) return;
    const std::lock_guard lock(mutex_);
    waiting_ = false;
  }
  bool waiting() const { return waiting_; }
  // Blocks until the wait has ended or the deadline has come.
  void block(const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    const auto ended = [this] { return !waiting_; };
    if (deadline) {
      changed_.wait_until(lock, *deadline, ended);
    } else {
      changed_.wait(lock, ended);
    }
  }

  // Ends that wait, if the invocation is still in it; kAnyWait: whichever it is in.
  static constexpr uint64_t kAnyWait = 0;
  void wake(uint64_t wait) {
    const std::lock_guard lock(mutex_);
    if (!waiting_ || (wait != kAnyWait && wait != wait_)) return;
    waiting_ = false;
    changed_.notify_all();
    if (settled_ && hook_.function)
      hook_.function(hook_.user);  // under the lock: set_hook({}) returns when it is over
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Hook hook_;
  uint64_t wait_ = 0;                  // counts them
  std::atomic<bool> waiting_ = false;  // written under the lock
  bool settled_ = false;  // until then the thread that runs the invocation sees by itself that it may go on
};

// The right to end one wait. Copies are the same.
class Wakeup {
 public:
  Wakeup(Ref<Waker> waker, uint64_t wait) : waker_(std::move(waker)), wait_(wait) {}
  void wake() const { waker_->wake(wait_); }

 private:
  Ref<Waker> waker_;
  uint64_t wait_;
};

}  // namespace halyard::vm
