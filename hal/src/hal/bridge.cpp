// Steps, signals made by the host, and subscriptions that outlive their caller.
#include "hal/bridge.h"

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "hal/callback_scope.h"

namespace halyard::hal {

void run_step(std::move_only_function<void()> step) {
  static thread_local std::deque<std::move_only_function<void()>>* pending = nullptr;
  if (pending) {
    pending->push_back(std::move(step));
    return;
  }
  std::deque<std::move_only_function<void()>> mine;
  pending = &mine;
  mine.push_back(std::move(step));
  while (!mine.empty()) {
    std::move_only_function<void()> next = std::move(mine.front());
    mine.pop_front();
    next();
  }
  pending = nullptr;
}

namespace {

void make_signal(Ref<Semaphore> semaphore, uint64_t value, Status failure) {
  run_step([semaphore = std::move(semaphore), value, told = std::move(failure)] {
    Status failed = told;
    if (failed.ok()) failed = to_status(semaphore->signal(value));
    if (!failed.ok() && (told || failed.code() != Code::INVALID_ARGUMENT)) semaphore->fail(failed);
  });
}

}  // namespace

void make_signals(Fence* fence, const Device& device, Makes makes, const Status& failure) {
  if (!fence) return;
  for (const Timepoint& timepoint : fence->timepoints()) {
    const bool foreign = &timepoint.semaphore->device().library() != &device.library();
    if (foreign || makes == Makes::all) make_signal(timepoint.semaphore, timepoint.value, failure);
  }
}

namespace {

struct Bridge {
  Ref<Semaphore> foreign;
  Ref<Semaphore> own;

  static void called(void* user, halyard_status_t status) {
    const CallbackScope scope;
    const std::unique_ptr<Bridge> bridge(static_cast<Bridge*>(user));
    make_signal(bridge->own, 1, Status::adopt(status));
  }
};

// Work that is held: shared by its subscriptions, each of which goes when it is called.
struct Held {
  std::mutex mutex;
  size_t missing = 0;
  std::move_only_function<void(Status)> due;  // empty once it is called

  void reached(Status status) {
    std::move_only_function<void(Status)> now;
    {
      const std::lock_guard lock(mutex);
      if (status.ok() && --missing > 0) return;
      now = std::exchange(due, nullptr);
    }
    if (now)
      run_step([now = std::move(now), status = std::move(status)]() mutable { now(std::move(status)); });
  }
};

struct Subscription {
  std::shared_ptr<Held> held;
  Ref<Semaphore> semaphore;

  static void called(void* user, halyard_status_t status) {
    const CallbackScope scope;
    const std::unique_ptr<Subscription> subscription(static_cast<Subscription*>(user));
    subscription->held->reached(Status::adopt(status));
  }
};

Result<> subscribe(const Timepoint& timepoint, halyard_subscriber_fn called, void* user) {
  const Semaphore& semaphore = *timepoint.semaphore;
  if (halyard_status_t status =
          semaphore.device().table().semaphore_subscribe(semaphore.handle(), timepoint.value, called, user))
    return std::unexpected(Status::adopt(status).note(
        fmt::format("waiting for a fence of device '{}'", semaphore.device().uri())));
  return {};
}

}  // namespace

Result<Ref<Semaphore>> make_bridge(Device& device, const Timepoint& timepoint) {
  Ref<Semaphore> own = HALYARD_TRY(Semaphore::create(Ref<Device>::share(&device), 0));
  auto bridge = std::make_unique<Bridge>(Bridge{timepoint.semaphore, own});
  HALYARD_TRY(subscribe(timepoint, Bridge::called, bridge.get()));
  (void)bridge.release();  // Bridge::called frees it, and may have done so already
  return own;
}

Result<> when_reached(const Ref<Fence>& fence, std::move_only_function<void(Status)> due) {
  auto held = std::make_shared<Held>();
  held->due = std::move(due);
  held->missing = 1;  // this function, until all are subscribed to
  if (fence) {
    held->missing += fence->timepoints().size();
    for (const Timepoint& timepoint : fence->timepoints()) {
      auto subscription = std::make_unique<Subscription>(Subscription{held, timepoint.semaphore});
      if (Result<> subscribed = subscribe(timepoint, Subscription::called, subscription.get()); !subscribed) {
        const std::lock_guard lock(held->mutex);
        if (!std::exchange(held->due, nullptr)) return {};  // another one has failed, and was told
        return subscribed;
      }
      (void)subscription.release();
    }
  }
  held->reached({});
  return {};
}

}  // namespace halyard::hal
