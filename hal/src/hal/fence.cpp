// Fences: sets of timepoints over drivers' timelines, and waiting for them from a host thread. Timepoints of
// one driver are waited for by that driver; those of several are subscribed to, because only the host sees
// all of them.
#include "hal/fence.h"

#include <dirent.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "hal/inline_vector.h"

namespace halyard::hal {

const ObjectType Semaphore::kType = object_type<Semaphore>("hal.semaphore");
const ObjectType Fence::kType = object_type<Fence>("hal.fence");

// ---- Semaphore ----

Result<Ref<Semaphore>> Semaphore::create(Ref<Device> device, uint64_t initial) {
  halyard_driver_semaphore_t handle = nullptr;
  if (halyard_status_t status = device->table().semaphore_create(device->handle(), initial, &handle))
    return std::unexpected(Status::adopt(status));
  return make<Semaphore>(std::move(device), handle);
}

Semaphore::~Semaphore() { device_->table().semaphore_destroy(device_->handle(), handle_); }

Result<uint64_t> Semaphore::query() const {
  uint64_t value = 0;
  if (halyard_status_t status = device_->table().semaphore_query(handle_, &value))
    return std::unexpected(Status::adopt(status));
  return value;
}

Result<> Semaphore::signal(uint64_t value) {
  Status status = Status::adopt(device_->table().semaphore_signal(handle_, value));
  if (status.code() != Code::INVALID_ARGUMENT) return to_result(std::move(status));
  return std::unexpected(
      Status(Code::INVALID_ARGUMENT, fmt::format("semaphore already signaled past {}", value))
          .caused_by(std::move(status)));
}

void Semaphore::fail(Status status) { device_->table().semaphore_fail(handle_, std::move(status).release()); }

// ---- Fence ----

namespace {

constexpr size_t kMaximumTimepoints = 65534;

std::string describe(const Timepoint& timepoint) {
  const Result<uint64_t> now = timepoint.semaphore->query();
  return fmt::format("value {} of semaphore {} of device '{}' (now {})", timepoint.value,
                     fmt::ptr(timepoint.semaphore.get()), timepoint.semaphore->device().uri(),
                     now ? std::to_string(*now) : "failed");
}

}  // namespace

Result<Ref<Fence>> Fence::create(Ref<Device> device) {
  Ref<Semaphore> semaphore = HALYARD_TRY(Semaphore::create(std::move(device), 0));
  std::vector<Timepoint> timepoints;
  timepoints.push_back({std::move(semaphore), 1});
  return make<Fence>(std::move(timepoints));
}

Result<Ref<Fence>> Fence::join(std::span<Fence* const> fences) {
  std::vector<Timepoint> joined;
  std::unordered_map<Semaphore*, size_t> places;
  for (Fence* fence : fences) {
    if (!fence) continue;
    for (const Timepoint& timepoint : fence->timepoints_) {
      const auto [place, is_new] = places.try_emplace(timepoint.semaphore.get(), joined.size());
      if (is_new) {
        joined.push_back(timepoint);
      } else if (joined[place->second].value < timepoint.value) {
        joined[place->second].value = timepoint.value;
      }
    }
    if (joined.size() > kMaximumTimepoints)
      return halyard::fail(Code::OUT_OF_RANGE,
                           "joined fence has {} timepoints or more; expected at most {}; join fewer fences",
                           joined.size(), kMaximumTimepoints);
  }
  if (joined.empty()) return Ref<Fence>();
  return make<Fence>(std::move(joined));
}

Status Fence::query() const {
  const Timepoint* unreached = nullptr;
  for (const Timepoint& timepoint : timepoints_) {
    const Result<uint64_t> value = timepoint.semaphore->query();
    if (!value) return value.error();
    if (*value < timepoint.value && !unreached) unreached = &timepoint;
  }
  if (!unreached) return {};
  return Status(Code::DEFERRED, "fence is not reached yet");
}

// All timepoints are reached afterwards, also those behind one that was reached already.
Result<> Fence::signal() {
  Result<> first;
  for (const Timepoint& timepoint : timepoints_) {
    Result<> result = timepoint.semaphore->signal(timepoint.value);
    if (!result && first) first = std::move(result);
  }
  return first;
}

void Fence::fail(const Status& status) {
  for (const Timepoint& timepoint : timepoints_) timepoint.semaphore->fail(status);
}

// ---- Waiting ----

namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as the driver ABI wants deadlines
using Unreached = InlineVector<const Timepoint*, 16>;

struct Deadline {
  uint32_t milliseconds;
  Clock::time_point time;
  bool forever() const { return milliseconds == kWaitForever; }
};

// Fills `unreached`; the first failure, if there is one.
Status look(std::span<Fence* const> fences, Unreached& unreached) {
  for (Fence* fence : fences) {
    if (!fence) continue;
    for (const Timepoint& timepoint : fence->timepoints()) {
      const Result<uint64_t> value = timepoint.semaphore->query();
      if (!value) return value.error();
      if (*value < timepoint.value) unreached.push_back(&timepoint);
    }
  }
  return {};
}

Status timeout_status(const Timepoint& timepoint, uint32_t milliseconds) {
  return Status(Code::DEADLINE_EXCEEDED, fmt::format("fence not reached within {} ms: expected {}",
                                                     milliseconds, describe(timepoint)));
}

bool process_has_one_thread() {
  DIR* folder = ::opendir("/proc/self/task");
  if (!folder) return false;  // cannot see: then it waits
  int threads = 0;
  while (const dirent* entry = ::readdir(folder)) threads += entry->d_name[0] != '.';
  ::closedir(folder);
  return threads == 1;
}

// Ruling 12, as far as the host can see it: devices that run in the caller act only when somebody calls, and
// the only thread that could call is about to block.
bool can_never_be_reached(Unreached& unreached) {
  for (const Timepoint* timepoint : unreached) {
    const uint32_t capabilities = timepoint->semaphore->device().properties().capabilities;
    if (!(capabilities & HALYARD_DEVICE_RUNS_IN_CALLER)) return false;
  }
  return process_has_one_thread();
}

Status wait_in_driver(Unreached& unreached, const Deadline& deadline) {
  InlineVector<halyard_timepoint_t, 16> timepoints;
  for (const Timepoint* timepoint : unreached)
    timepoints.push_back({timepoint->semaphore->handle(), timepoint->value});
  halyard_semaphore_wait_args_t args = {};
  args.struct_size = sizeof(args);
  args.timepoint_count = static_cast<uint32_t>(timepoints.size());
  args.timepoints = timepoints.data();
  args.deadline_ns =
      deadline.forever()
          ? HALYARD_WAIT_FOREVER
          : std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time.time_since_epoch()).count();
  const Device& device = unreached[0]->semaphore->device();
  return Status::adopt(device.table().semaphore_wait(device.handle(), &args));
}

// One waiting thread and its subscriptions.
struct Waiter {
  std::mutex mutex;
  std::condition_variable changed;
  size_t outstanding = 0;  // subscriptions that may still be called
  size_t reached = 0;
  Status failure;
};

struct Subscription {
  Waiter* waiter;
  const Timepoint* timepoint;
};

void subscription_called(void* user, halyard_status_t handle) {
  Status status = Status::adopt(handle);
  Waiter& waiter = *static_cast<Subscription*>(user)->waiter;
  const std::lock_guard lock(waiter.mutex);
  --waiter.outstanding;
  if (status.ok()) {
    ++waiter.reached;
  } else if (waiter.failure.ok()) {
    waiter.failure = std::move(status);
  }
  waiter.changed.notify_all();  // under the lock: the waiter goes away as soon as it can have it
}

Status wait_on_host(Unreached& unreached, const Deadline& deadline) {
  Waiter waiter;
  const size_t count = unreached.size();
  const auto subscriptions = std::make_unique<Subscription[]>(count);
  size_t subscribed = 0;
  Status failure;
  while (subscribed < count && failure.ok()) {
    Subscription& subscription = subscriptions[subscribed];
    subscription = {&waiter, unreached[subscribed]};
    const Semaphore& semaphore = *subscription.timepoint->semaphore;
    {
      const std::lock_guard lock(waiter.mutex);
      ++waiter.outstanding;
    }
    failure = Status::adopt(semaphore.device().table().semaphore_subscribe(
        semaphore.handle(), subscription.timepoint->value, subscription_called, &subscription));
    if (failure.ok()) {
      ++subscribed;
    } else {
      const std::lock_guard lock(waiter.mutex);
      --waiter.outstanding;
    }
  }
  if (failure.ok()) {
    std::unique_lock lock(waiter.mutex);
    const auto done = [&] { return !waiter.failure.ok() || waiter.outstanding == 0; };
    if (deadline.forever()) {
      waiter.changed.wait(lock, done);
    } else {
      waiter.changed.wait_until(lock, deadline.time, done);
    }
  }
  for (size_t i = 0; i < subscribed; ++i) {
    const Semaphore& semaphore = *subscriptions[i].timepoint->semaphore;
    const bool taken_back = semaphore.device().table().semaphore_unsubscribe(
                                semaphore.handle(), subscription_called, &subscriptions[i]) != 0;
    const std::lock_guard lock(waiter.mutex);
    waiter.outstanding -= taken_back;
  }
  std::unique_lock lock(waiter.mutex);
  waiter.changed.wait(lock, [&] { return waiter.outstanding == 0; });  // those that are being called now
  if (!failure.ok()) return failure;
  if (!waiter.failure.ok()) return waiter.failure;
  if (waiter.reached == count) return {};
  return Status(Code::DEADLINE_EXCEEDED, "deadline");
}

}  // namespace

Status await(std::span<Fence* const> fences, uint32_t timeout_milliseconds, bool* timed_out) {
  if (timed_out) *timed_out = false;
  Unreached unreached;
  if (Status failure = look(fences, unreached)) return failure;
  if (unreached.empty()) return {};
  if (timeout_milliseconds != 0) {
    const Deadline deadline = {timeout_milliseconds,
                               Clock::now() + std::chrono::milliseconds(timeout_milliseconds)};
    if (deadline.forever() && can_never_be_reached(unreached))
      return Status(
          Code::ABORTED,
          fmt::format(
              "waiting without limit for {}: the process has no other thread and no work under way that "
              "could signal it; signal the fence before awaiting it, or give a timeout",
              describe(*unreached[0])));
    bool one_driver = true;
    for (const Timepoint* timepoint : unreached)
      one_driver &= &timepoint->semaphore->device().library() == &unreached[0]->semaphore->device().library();
    Status status = one_driver ? wait_in_driver(unreached, deadline) : wait_on_host(unreached, deadline);
    if (status.code() != Code::DEADLINE_EXCEEDED || deadline.forever()) return status;
    // The deadline, or a failure with the same code. Looking again tells them apart.
    Unreached still;
    if (Status failure = look(fences, still)) return failure;
    if (still.empty()) return {};
  }
  if (timed_out) *timed_out = true;
  return timeout_status(*unreached[0], timeout_milliseconds);
}

}  // namespace halyard::hal
