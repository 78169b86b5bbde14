// Steps, signals made by the host, and subscriptions that outlive their caller.
#include "hal/queue/bridge.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/c_boundary.h"
#include "base/thread_local.h"
#include "hal/device/callback_scope.h"

namespace halyard::hal {

void run_step(Step& step) noexcept {
  struct Queue {
    bool is_running = false;
    Step* first = nullptr;
    Step* last = nullptr;
  };
  HALYARD_SMALL_THREAD_LOCAL static thread_local Queue queue;
  step.next = nullptr;
  (queue.first ? queue.last->next : queue.first) = &step;
  queue.last = &step;
  if (queue.is_running) return;
  queue.is_running = true;
  while (Step* next = queue.first) {
    queue.first = next->next;
    next->run(*next);
  }
  queue.is_running = false;
}

namespace {

// The driver's own words, without ours: those would take memory.
void make_signal(Semaphore& semaphore, uint64_t value, const Status& failure) noexcept {
  if (failure) return semaphore.fail(failure);
  const halyard_driver_table_t& table = semaphore.device().table();
  Status failed = Status::adopt(table.semaphore_signal(semaphore.handle(), value));
  if (failed && failed.code() != Code::INVALID_ARGUMENT) semaphore.fail(std::move(failed));
}

}  // namespace

void make_signals(Fence* fence, const Device& device, Makes makes, const Status& failure) noexcept {
  if (!fence) return;
  for (const Timepoint& timepoint : fence->timepoints()) {
    const bool foreign = &timepoint.semaphore->device().library() != &device.library();
    if (foreign || makes == Makes::all) make_signal(*timepoint.semaphore, timepoint.value, failure);
  }
}

namespace {

// What of the other driver's timepoint the host carries over.
enum class Carries : uint8_t { all, failure };

struct Bridge : Step {
  Awaited foreign;
  Ref<Semaphore> own;
  Carries carries;
  Status status;

  Bridge(const Timepoint& timepoint, Ref<Semaphore> semaphore, Carries what)
      : foreign(*timepoint.semaphore, timepoint.value), own(std::move(semaphore)), carries(what) {
    run = [](Step& self) noexcept {
      const std::unique_ptr<Bridge> bridge(static_cast<Bridge*>(&self));
      if (bridge->carries == Carries::all || !bridge->status.ok())
        make_signal(*bridge->own, 1, bridge->status);
    };
  }
  static void called(void* user, halyard_status_t status) {
    const CallbackScope scope;
    auto* bridge = static_cast<Bridge*>(user);
    bridge->status = Status::adopt(status);
    run_step(*bridge);
  }
};

// Work that is held: shared by its subscriptions, each of which goes when it is called.
struct Held : Step {
  std::mutex mutex;
  size_t missing = 0;
  std::move_only_function<void(Status)> due;  // empty once it is called, or is not to be
  Status status;
  std::shared_ptr<Held> self;  // while it is a step

  explicit Held(std::move_only_function<void(Status)> what) : due(std::move(what)) {
    run = [](Step& step) noexcept {
      const std::shared_ptr<Held> held = std::move(static_cast<Held&>(step).self);
      std::move_only_function<void(Status)> due = std::exchange(held->due, nullptr);
      static_cast<void>(outcome_of([&]() -> Result<> {
        due(std::move(held->status));
        return {};
      }));
    };
  }

  static void reached(const std::shared_ptr<Held>& held, Status status) noexcept {
    {
      const std::lock_guard lock(held->mutex);
      if (status.ok() && --held->missing > 0) return;
      if (!held->due || held->self) return;
      held->status = std::move(status);
      held->self = held;
    }
    run_step(*held);
  }
  // It is not to be called any more. False where it was, or is about to be.
  bool withdraw() {
    const std::lock_guard lock(mutex);
    if (self) return false;
    return std::exchange(due, nullptr) != nullptr;
  }
};

struct Subscription {
  std::shared_ptr<Held> held;
  Awaited awaited;

  static void called(void* user, halyard_status_t status) {
    const CallbackScope scope;
    const std::unique_ptr<Subscription> subscription(static_cast<Subscription*>(user));
    Held::reached(subscription->held, Status::adopt(status));
  }
};

Status subscribe(const Timepoint& timepoint, halyard_subscriber_fn called, void* user) noexcept {
  const Semaphore& semaphore = *timepoint.semaphore;
  return Status::adopt(
      semaphore.device().table().semaphore_subscribe(semaphore.handle(), timepoint.value, called, user));
}

std::unexpected<Status> not_subscribed(const Timepoint& timepoint, Status status) {
  return std::unexpected(std::move(status).note(
      fmt::format("waiting for a fence of device '{}'", timepoint.semaphore->device().uri())));
}

}  // namespace

namespace {

Result<> bridge_to(const Timepoint& timepoint, Ref<Semaphore> own, Carries what) {
  auto bridge = std::make_unique<Bridge>(timepoint, std::move(own), what);
  if (Status status = subscribe(timepoint, Bridge::called, bridge.get()))
    return not_subscribed(timepoint, std::move(status));
  (void)bridge.release();  // Bridge::called frees it, and may have done so already
  return {};
}

}  // namespace

Result<Ref<Semaphore>> make_bridge(Device& device, const Timepoint& timepoint) {
  Ref<Semaphore> own = HALYARD_TRY(Semaphore::create(Ref<Device>::share(&device), 0));
  HALYARD_TRY(bridge_to(timepoint, own, Carries::all));
  return own;
}

Result<> pass_failure(const Timepoint& timepoint, Ref<Semaphore> semaphore) {
  return bridge_to(timepoint, std::move(semaphore), Carries::failure);
}

Result<> when_reached(const Ref<Fence>& fence, std::move_only_function<void(Status)> due) {
  const auto held = std::make_shared<Held>(std::move(due));
  std::vector<std::unique_ptr<Subscription>> subscriptions;  // all of them, before any is called
  if (fence)
    for (const Timepoint& timepoint : fence->timepoints())
      subscriptions.push_back(
          std::make_unique<Subscription>(Subscription{held, {*timepoint.semaphore, timepoint.value}}));
  held->missing = subscriptions.size() + 1;  // this function, until all are subscribed to
  for (size_t i = 0; i < subscriptions.size(); ++i) {
    const Timepoint& timepoint = fence->timepoints()[i];
    if (Status status = subscribe(timepoint, Subscription::called, subscriptions[i].get())) {
      if (!held->withdraw()) return {};  // another one has failed, and was told
      return not_subscribed(timepoint, std::move(status));
    }
    (void)subscriptions[i].release();
  }
  Held::reached(held, {});
  return {};
}

}  // namespace halyard::hal
