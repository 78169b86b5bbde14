// Fences: sets of timepoints over drivers' timelines, and waiting for them from a host thread. Timepoints of
// one driver are waited for by that driver; those of several are subscribed to, because only the host sees
// all of them.
#include "hal/queue/fence.h"

#include <dirent.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/atomics.h"
#include "base/c_boundary.h"
#include "hal/device/callback_scope.h"
#include "hal/device/pooled.h"
#include "hal/driver/driver_memory.h"
#include "hal/queue/inline_vector.h"

namespace halyard::hal {

const ObjectType Semaphore::kType = {"hal.semaphore", &Semaphore::destroy};
const ObjectType Fence::kType = pooled_object_type<Fence>("hal.fence");

// ---- Semaphore ----

Result<Ref<Semaphore>> Semaphore::create(Ref<Device> device, uint64_t initial, Budget* memory) {
  // Made before the handle, which it then owns.
  Device& home = *device;
  Ref<Semaphore> semaphore = make_pooled<Semaphore>(home, std::move(device));
  HALYARD_TRY(semaphore->charge_.start(
      memory, NodePool::footprint(sizeof(Semaphore)) + driver_memory::kSemaphore, "a semaphore"));
  const Device& on = semaphore->device();
  halyard_driver_semaphore_t handle = nullptr;
  if (halyard_status_t status = on.table().semaphore_create(on.handle(), initial, &handle))
    return std::unexpected(Status::adopt(status));
  HALYARD_TRY(on.check_given(handle, "semaphore_create"));
  semaphore->handle_ = handle;
  if (DeviceTrace* trace = on.trace()) semaphore->trace_number_ = trace->tracer().new_flow();
  return semaphore;
}

Ref<Device> Semaphore::leave() {
  drop_imports();
  if (handle_) device_->table().semaphore_destroy(device_->handle(), handle_);
  return std::move(device_);
}

void Semaphore::let_go() {
  // As with references: who sees that it is the only one, is.
  if (holders_.load(std::memory_order_acquire) == 1 || fetch_sub(holders_, 1, std::memory_order_acq_rel) == 1)
    destroy_pooled(this);
}

void Semaphore::destroy(Object* object) {
  auto* semaphore = static_cast<Semaphore*>(object);
  if (semaphore->holders_.load(std::memory_order_acquire) > 1) {
    const Result<uint64_t> value = semaphore->query();
    const uint64_t awaited = semaphore->awaited_.load(std::memory_order_relaxed);
    if (value && *value < awaited) {
      Status abandoned = out_of_memory();
      static_cast<void>(outcome_of([&]() -> Result<> {
        abandoned = Status(
            Code::ABORTED,
            fmt::format(
                "value {} of a semaphore of device '{}' (now {}) will never be reached: nothing that could "
                "signal it is left; keep its fence until it is signalled, or fail it",
                awaited, semaphore->device_->uri(), *value));
        return {};
      }));
      semaphore->fail(std::move(abandoned));
    }
  }
  semaphore->let_go();
}

Awaited::Awaited(Semaphore& semaphore, uint64_t value) : semaphore_(&semaphore) {
  fetch_add(semaphore.holders_, 1, std::memory_order_relaxed);
  uint64_t known = semaphore.awaited_.load(std::memory_order_relaxed);
  while (known < value && !compare_exchange(semaphore.awaited_, known, value, std::memory_order_relaxed)) {
  }
}

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
      Status(Code::INVALID_ARGUMENT,
             fmt::format("expected a value above the semaphore's, found {}; signal each once", value))
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

Result<Ref<Fence>> Fence::create(Ref<Device> device, Budget* memory) {
  Device& home = *device;
  Ref<Semaphore> semaphore = HALYARD_TRY(Semaphore::create(std::move(device), 0, memory));
  Ref<Fence> fence = make_pooled<Fence>(home, Timepoint{std::move(semaphore), 1});
  HALYARD_TRY(fence->charge_.start(memory, NodePool::footprint(sizeof(Fence)), "a fence"));
  return fence;
}

Result<Ref<Fence>> Fence::of(Timepoints&& timepoints, Budget* memory) {
  Device& home = timepoints[0].semaphore->device();
  // An array of its own has grown by doubling.
  const uint64_t array = timepoints.size() > 1 ? block_bytes(2 * timepoints.size() * sizeof(Timepoint)) : 0;
  Ref<Fence> fence = make_pooled<Fence>(home, std::move(timepoints));
  HALYARD_TRY(fence->charge_.start(memory, NodePool::footprint(sizeof(Fence)) + array, "a fence"));
  return fence;
}

Result<Ref<Fence>> Fence::join(std::span<Fence* const> fences, Budget* memory) {
  Charge joining;
  if (memory) [[unlikely]] {
    constexpr uint64_t kEach = 3 * sizeof(Timepoint) + 64;  // both arrays while they grow, and the map
    uint64_t count = 0;
    for (const Fence* fence : fences) count += fence ? fence->timepoints_.size() : 0;
    HALYARD_TRY(
        joining.start(memory, std::min<uint64_t>(count, 2 * kMaximumTimepoints) * kEach, "joining fences"));
  }
  Timepoints joined;
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
  joining = {};
  return of(std::move(joined), memory);
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
  trace_fence(*this, "signal");
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

// Not for much longer than one device may take [R89].
void lend_thread(const Unreached& unreached) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(10);
  for (const Timepoint* timepoint : unreached) {
    if (Clock::now() >= end) return;
    const Device& device = timepoint->semaphore->device();
    if (!device.table().device_help) continue;
    const halyard_timepoint_t point = {timepoint->semaphore->handle(), timepoint->value};
    halyard_semaphore_wait_args_t args = {};
    args.struct_size = sizeof(args);
    args.timepoint_count = 1;
    args.timepoints = &point;
    args.deadline_ns = HALYARD_WAIT_FOREVER;
    device.table().device_help(device.handle(), &args);
  }
}

// Subscriptions to several timepoints, and what has come of them.
class Subscriptions {
 public:
  // `ended` (may be empty) is called once, under a lock: when all are reached or the first has failed.
  explicit Subscriptions(std::move_only_function<void()> ended) : ended_(std::move(ended)) {}
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;
  // Takes them back, and waits for those that are being called now.
  ~Subscriptions() {
    for (size_t i = 0; i < subscribed_; ++i) {
      const Semaphore& semaphore = *entries_[i].timepoint.semaphore;
      const bool taken_back =
          semaphore.device().table().semaphore_unsubscribe(semaphore.handle(), called, &entries_[i]) != 0;
      const std::lock_guard lock(mutex_);
      outstanding_ -= taken_back;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outstanding_ == 0; });
  }

  Status start(Unreached& unreached) {
    entries_.reserve(unreached.size());  // they stay where they are
    {
      const std::lock_guard lock(mutex_);
      wanted_ = unreached.size();
      outstanding_ = unreached.size();
    }
    while (subscribed_ < unreached.size()) {
      entries_.push_back({this, *unreached[subscribed_]});
      Entry& entry = entries_.back();
      const Semaphore& semaphore = *entry.timepoint.semaphore;
      if (Status failure = Status::adopt(semaphore.device().table().semaphore_subscribe(
              semaphore.handle(), entry.timepoint.value, called, &entry))) {
        const std::lock_guard lock(mutex_);
        outstanding_ -= unreached.size() - subscribed_;
        return failure;
      }
      ++subscribed_;
    }
    return {};
  }

  // OK, the first failure, or DEADLINE_EXCEEDED.
  Status wait(const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return is_over(); };
    if (deadline.forever()) {
      changed_.wait(lock, over);
    } else {
      changed_.wait_until(lock, deadline.time, over);
    }
    if (!failure_.ok()) return failure_;
    if (reached_ == wanted_) return {};
    return Status(Code::DEADLINE_EXCEEDED, "deadline");
  }

 private:
  struct Entry {
    Subscriptions* owner = nullptr;
    Timepoint timepoint;
  };

  bool is_over() const { return !failure_.ok() || reached_ == wanted_; }

  static void called(void* user, halyard_status_t handle) {
    const CallbackScope scope;
    Status status = Status::adopt(handle);
    Subscriptions& self = *static_cast<Entry*>(user)->owner;
    const std::lock_guard lock(self.mutex_);
    const bool was_over = self.is_over();
    --self.outstanding_;
    if (status.ok()) {
      ++self.reached_;
    } else if (self.failure_.ok()) {
      self.failure_ = std::move(status);
    }
    if (!was_over && self.is_over() && self.ended_) self.ended_();
    self.changed_.notify_all();  // under the lock: the owner goes away as soon as it can have it
  }

  std::move_only_function<void()> ended_;
  InlineVector<Entry, 2> entries_;
  size_t subscribed_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t wanted_ = 0;
  size_t outstanding_ = 0;  // that may still be called
  size_t reached_ = 0;
  Status failure_;
};

Status wait_on_host(Unreached& unreached, const Deadline& deadline) {
  Subscriptions subscriptions({});
  if (Status failure = subscriptions.start(unreached)) return failure;
  return subscriptions.wait(deadline);
}

Status never_reached(const Timepoint& timepoint) {
  return Status(
      Code::ABORTED,
      fmt::format("waiting without limit for {}: the process has no other thread and no work under way that "
                  "could signal it; signal the fence before awaiting it, or give a timeout",
                  describe(timepoint)));
}

class FenceWatch final : public ObjectOf<FenceWatch> {
 public:
  static const ObjectType kType;
  FenceWatch(Ref<Device> home, std::move_only_function<void()> ended)
      : subscriptions(std::move(ended)), home_(std::move(home)) {}
  Result<> charge_to(Budget* memory, size_t timepoints) {
    return charge_.start(memory,
                         NodePool::footprint(sizeof(FenceWatch)) + timepoints * driver_memory::kSubscription,
                         "a wait for fences");
  }
  Device& device() const { return *home_; }
  Ref<Device> leave() { return std::move(home_); }

  Subscriptions subscriptions;

 private:
  Ref<Device> home_;  // for its memory
  Charge charge_;
};
const ObjectType FenceWatch::kType = pooled_object_type<FenceWatch>("hal.fence_watch");

}  // namespace

Status await(std::span<Fence* const> fences, uint32_t timeout_milliseconds, bool* timed_out) {
  if (timed_out) *timed_out = false;
  Unreached unreached;
  if (Status failure = look(fences, unreached)) return failure;
  if (unreached.empty()) return {};
  if (timeout_milliseconds != 0) {
    const Deadline deadline = {timeout_milliseconds,
                               Clock::now() + std::chrono::milliseconds(timeout_milliseconds)};
    if (deadline.forever()) {
      if (can_never_be_reached(unreached)) return never_reached(*unreached[0]);
      lend_thread(unreached);
    }
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

Status check_reachable(std::span<Fence* const> fences) {
  Unreached unreached;
  if (Status failure = look(fences, unreached)) return failure;
  if (!unreached.empty() && can_never_be_reached(unreached)) return never_reached(*unreached[0]);
  return {};
}

void help(std::span<Fence* const> fences) {
  Unreached unreached;
  if (look(fences, unreached).ok()) lend_thread(unreached);
}

Result<Ref<Object>> watch(std::span<Fence* const> fences, std::move_only_function<void()> ended,
                          Budget* memory) {
  Unreached unreached;
  if (Status failure = look(fences, unreached); !failure.ok() || unreached.empty()) {
    ended();
    return Ref<Object>();
  }
  Device& home = unreached[0]->semaphore->device();
  auto made = make_pooled<FenceWatch>(home, Ref<Device>::share(&home), std::move(ended));
  HALYARD_TRY(made->charge_to(memory, unreached.size()));
  HALYARD_TRY(to_result(made->subscriptions.start(unreached)));
  return Ref<Object>(std::move(made));
}

}  // namespace halyard::hal
