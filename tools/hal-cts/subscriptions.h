// A subscriber of a case: counts its calls and records their arguments. It must exist as long as the
// semaphore can call it. A stopped session is never destroyed, but the stack of its case is, so subscribers
// are on the heap.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "session.h"

namespace halyard::cts {

class Subscription {
 public:
  // `then` runs in each call, before the call is counted.
  explicit Subscription(Session& session, std::function<void()> then = {})
      : state_(new State{session, std::move(then), {}, {}, 0, {}}) {
    static auto& all = *new std::vector<State*>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    all.push_back(state_);
  }
  Subscription(const Subscription&) = delete;

  Outcome to(Semaphore semaphore, uint64_t value) {
    return state_->session.take(
        state_->session.table().semaphore_subscribe(semaphore, value, called, state_));
  }
  int32_t unsubscribe(Semaphore semaphore) {
    return state_->session.table().semaphore_unsubscribe(semaphore, called, state_);
  }

  int calls() const {
    const std::lock_guard lock(state_->mutex);
    return state_->calls;
  }
  Outcome outcome() const {  // of the first call
    const std::lock_guard lock(state_->mutex);
    return state_->outcome;
  }
  // Waits for `times` calls; more calls are a problem.
  void is_called(std::string_view rule, const std::string& what, int times) {
    const int64_t left = state_->session.patience() - now_ns();
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, std::chrono::nanoseconds(left), [&] { return state_->calls >= times; });
    const int found = state_->calls;
    lock.unlock();
    state_->session.equal(rule, "calls of " + what, times, found);
  }

 private:
  struct State {
    Session& session;
    std::function<void()> then;
    std::mutex mutex;
    std::condition_variable changed;
    int calls;
    Outcome outcome;
  };

  static void called(void* user, halyard_status_t status) {
    auto& state = *static_cast<State*>(user);
    Outcome outcome = state.session.take(status);
    if (state.then) state.then();
    const std::lock_guard lock(state.mutex);
    if (state.calls++ == 0) state.outcome = std::move(outcome);
    state.changed.notify_all();
  }

  // Never freed but kept in a list, because a driver may call too late.
  State* const state_;
};

}  // namespace halyard::cts
