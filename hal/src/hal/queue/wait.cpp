// Waiting for timepoints. A thread that waits for one driver only blocks in that driver, which may run
// pending work on it and spin before it sleeps. All other waits subscribe to the timepoints.
#include "hal/queue/wait.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/container/small_vector.hpp>
#include <string>
#include <utility>

#include "base/atomics.h"
#include "base/c_boundary.h"
#include "base/step.h"
#include "hal/device/callback_scope.h"
#include "hal/device/pooled.h"
#include "hal/driver/driver_memory.h"

namespace halyard::hal {

namespace {

using Clock = Wait::Clock;  // the clock of deadlines in the driver ABI
using Deadline = Wait::Deadline;
using Unreached = boost::container::small_vector<const Timepoint*, 16>;

std::string describe(const Timepoint& timepoint) {
  const Result<uint64_t> now = timepoint.semaphore->query();
  return fmt::format("value {} of semaphore {} of device '{}' (now {})", timepoint.value,
                     fmt::ptr(timepoint.semaphore.get()), timepoint.semaphore->device().uri(),
                     now ? std::to_string(*now) : "failed");
}

// Collects the timepoints that have not been reached. Returns whether there are none, or the first failure.
Result<bool> find_unreached(std::span<Fence* const> fences, Unreached& unreached) {
  unreached = {};
  for (Fence* fence : fences) {
    if (!fence) continue;
    for (const Timepoint& timepoint : fence->timepoints()) {
      const Result<uint64_t> value = timepoint.semaphore->query();
      if (!value) return std::unexpected(value.error());
      if (*value < timepoint.value) unreached.push_back(&timepoint);
    }
  }
  return unreached.empty();
}

Status timeout_status(const Timepoint& timepoint, uint32_t milliseconds) {
  return Status(Code::DEADLINE_EXCEEDED, fmt::format("fence not reached within {} ms: expected {}",
                                                     milliseconds, describe(timepoint)));
}

bool process_has_one_thread() {
  DIR* folder = ::opendir("/proc/self/task");
  if (!folder) return false;  // unknown: assume that there are other threads
  int threads = 0;
  while (const dirent* entry = ::readdir(folder)) threads += entry->d_name[0] != '.';
  ::closedir(folder);
  return threads == 1;
}

// Ruling 12, as far as the host knows: devices that run in the caller need a thread that calls them, and the
// only thread is about to block.
bool can_never_be_reached(Unreached& unreached) {
  for (const Timepoint* timepoint : unreached) {
    const uint32_t capabilities = timepoint->semaphore->device().properties().capabilities;
    if (!(capabilities & HALYARD_DEVICE_RUNS_IN_CALLER)) return false;
  }
  return process_has_one_thread();
}

Status block_in_driver(Unreached& unreached, const Deadline& deadline) {
  boost::container::small_vector<halyard_timepoint_t, 16> timepoints;
  for (const Timepoint* timepoint : unreached)
    timepoints.push_back({timepoint->semaphore->handle(), timepoint->value});
  halyard_semaphore_wait_args_t args = {};
  args.struct_size = sizeof(args);
  args.timepoint_count = static_cast<uint32_t>(timepoints.size());
  args.timepoints = timepoints.data();
  args.deadline_ns =
      deadline ? std::chrono::duration_cast<std::chrono::nanoseconds>(deadline->time_since_epoch()).count()
               : HALYARD_WAIT_FOREVER;
  const Device& device = unreached[0]->semaphore->device();
  return Status::adopt(device.table().semaphore_wait(device.handle(), &args));
}

// Returns soon after the time limit of one device [R89].
void run_pending_in_drivers(const Unreached& unreached) {
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

void do_then(Then then, Status status) noexcept {
  static_cast<void>(outcome_of([&]() -> Result<> {
    then(std::move(status));
    return {};
  }));
}

// A wait for timepoints, to which it subscribes. Objects that need the end hold references. Subscriptions are
// counted separately, and are cancelled when the last reference is dropped.
class FenceWait final : public Wait, Step {
 public:
  static const ObjectType kType;

  // The action at the end: a wakeup at once, or a function as a step. A wait with a step keeps itself alive
  // until the step has run; other waits have a blocked thread.
  struct End {
    Wakeup wakeup = {};
    Then then = {};
    Budget* memory = nullptr;  // charged; may be null
  };
  // RESOURCE_EXHAUSTED, or a driver's failure to subscribe; after such a failure the end is not reported.
  static Result<Ref<FenceWait>> begin(const Unreached& timepoints, End end) {
    Device& home = timepoints[0]->semaphore->device();
    auto wait = make_pooled<FenceWait>(home, Ref<Device>::share(&home), timepoints.size(), std::move(end));
    HALYARD_TRY(wait->subscribe(timepoints));
    return wait;
  }

  // With several timepoints, completing the subscriptions counts as one more part.
  FenceWait(Ref<Device> home, size_t timepoints, End end)
      : Wait(&kType, static_cast<uint32_t>(timepoints == 1 ? 1 : timepoints + 1)),
        home_(std::move(home)),
        end_(std::move(end)),
        has_step_(static_cast<bool>(end_.then)) {
    run = [](Step& self) noexcept { static_cast<FenceWait&>(self).run_step_once(); };
  }
  Device& device() const { return *home_; }
  Ref<Device> leave() { return std::move(home_); }

 private:
  struct Subscription {
    FenceWait* wait;
    Awaited awaited;
  };

  Result<> subscribe(const Unreached& timepoints) {
    HALYARD_TRY(charge_.start(
        end_.memory,
        NodePool::footprint(sizeof(FenceWait)) + timepoints.size() * driver_memory::kSubscription,
        "a wait for fences"));
    subscriptions_.reserve(timepoints.size());  // their addresses must be stable
    if (has_step_) self_ = Ref<FenceWait>::share(this);
    for (const Timepoint* timepoint : timepoints) {
      Semaphore& semaphore = *timepoint->semaphore;
      subscriptions_.push_back({this, Awaited(semaphore, timepoint->value)});
      fetch_add(holders_, 1, std::memory_order_relaxed);
      ++subscribed_;
      Status refused = Status::adopt(semaphore.device().table().semaphore_subscribe(
          semaphore.handle(), timepoint->value, called, &subscriptions_.back()));
      if (refused.ok()) continue;
      --subscribed_;
      drop_holder();
      if (!abandon()) return {};  // another timepoint has failed, and that failure was reported
      self_ = {};
      return std::unexpected(std::move(refused).note(
          fmt::format("waiting for a fence of device '{}'", semaphore.device().uri())));
    }
    if (timepoints.size() > 1) part_arrived({});
    return {};
  }

  static void called(void* user, halyard_status_t handle) {
    const CallbackScope scope;
    FenceWait& wait = *static_cast<Subscription*>(user)->wait;
    wait.part_arrived(Status::adopt(handle));
    wait.drop_holder();
  }
  void part_arrived(Status status) noexcept {
    if (!arrive(std::move(status))) return;
    end_.wakeup.wake();
    if (has_step_) run_step(*this);
  }
  void run_step_once() noexcept {
    const Ref<FenceWait> kept = std::move(self_);
    do_then(std::exchange(end_.then, nullptr), failure());
  }

  // Called when the last reference is dropped: cancels the subscriptions.
  static void destroy(Object* object) {
    auto* wait = static_cast<FenceWait*>(object);
    for (size_t i = 0; i < wait->subscribed_; ++i) {
      if (wait->holders_.load(std::memory_order_acquire) == 1) break;  // all subscribers have been called
      Subscription& each = wait->subscriptions_[i];
      const Semaphore& semaphore = each.awaited.semaphore();
      if (semaphore.device().table().semaphore_unsubscribe(semaphore.handle(), called, &each) != 0)
        wait->drop_holder();
    }
    wait->charge_ = {};
    wait->drop_holder();
  }
  void drop_holder() noexcept {
    if (fetch_sub(holders_, 1, std::memory_order_acq_rel) == 1) destroy_pooled(this);
  }

  Ref<Device> home_;  // owner of its memory
  End end_;
  const bool has_step_;
  Ref<FenceWait> self_;  // set while a step is pending
  boost::container::small_vector<Subscription, 2> subscriptions_;
  size_t subscribed_ = 0;             // number of subscriptions
  std::atomic<uint32_t> holders_{1};  // one for all references, one for each subscription that may be called
  Charge charge_;
};
const ObjectType FenceWait::kType = {"hal.fence_wait", &FenceWait::destroy};

// Several drivers have no common wait function. A single driver has one, which may be faster than a
// subscriber: that of Vulkan waits on the device, without another thread in between.
Result<bool> block(Unreached& unreached, const Deadline& deadline) {
  const Device& first = unreached[0]->semaphore->device();
  if (std::ranges::all_of(unreached,
                          [&](const Timepoint* timepoint) { return is_of_driver(*timepoint, first); })) {
    HALYARD_TRY(to_result(block_in_driver(unreached, deadline)));
    return true;
  }
  const Ref<FenceWait> wait = HALYARD_TRY(FenceWait::begin(unreached, {}));
  if (!wait->block(deadline)) return fail(Code::DEADLINE_EXCEEDED, "deadline");
  HALYARD_TRY(to_result(wait->failure()));
  return true;
}

Status never_reached(const Timepoint& timepoint) {
  return Status(
      Code::ABORTED,
      fmt::format("waiting without limit for {}: the process has no other thread and no work under way that "
                  "could signal it; signal the fence before awaiting it, or give a timeout",
                  describe(timepoint)));
}

// Implements run_pending_work() for fences that are not reached.
Result<bool> run_pending(std::span<Fence* const> fences, Unreached& unreached) {
  if (can_never_be_reached(unreached)) return std::unexpected(never_reached(*unreached[0]));
  run_pending_in_drivers(unreached);
  return find_unreached(fences, unreached);
}

// Reports to the tracer that the fences are reached; returns `reached` unchanged.
Result<bool> traced(Result<bool> reached, std::span<Fence* const> fences) {
  if (!reached || !*reached) return reached;
  for (const Fence* fence : fences)
    if (fence) trace_fence(*fence, "reached");
  return true;
}

}  // namespace

Result<bool> are_reached(std::span<Fence* const> fences) {
  Unreached unreached;
  return traced(find_unreached(fences, unreached), fences);
}

Result<bool> run_pending_work(std::span<Fence* const> fences) {
  Unreached unreached;
  Result<bool> reached = find_unreached(fences, unreached);
  if (reached && !*reached) reached = run_pending(fences, unreached);
  return traced(std::move(reached), fences);
}

Status await(std::span<Fence* const> fences, uint32_t timeout_milliseconds) {
  const bool forever = timeout_milliseconds == kWaitForever;
  Unreached unreached;
  Result<bool> reached = find_unreached(fences, unreached);
  if (reached && !*reached && forever) reached = run_pending(fences, unreached);
  if (reached && !*reached && timeout_milliseconds != 0) {
    Deadline deadline;
    if (!forever) deadline = Clock::now() + std::chrono::milliseconds(timeout_milliseconds);
    reached = block(unreached, deadline);
    // Either the deadline has passed, or a timepoint has failed with the same code. A second check
    // distinguishes them.
    if (!reached && reached.error().code() == Code::DEADLINE_EXCEEDED && !forever)
      reached = find_unreached(fences, unreached);
  }
  reached = traced(std::move(reached), fences);
  if (!reached) return std::move(reached.error());
  return *reached ? Status() : timeout_status(*unreached[0], timeout_milliseconds);
}

Result<Ref<Object>> watch(std::span<Fence* const> fences, Wakeup wakeup, Budget* memory) {
  Unreached unreached;
  if (const Result<bool> reached = find_unreached(fences, unreached); !reached || *reached) {
    wakeup.wake();
    return Ref<Object>();
  }
  return FenceWait::begin(unreached, {.wakeup = std::move(wakeup), .memory = memory});
}

Result<> when_reached(std::span<const Timepoint> timepoints, Then then) {
  if (timepoints.empty()) {
    do_then(std::move(then), {});
    return {};
  }
  Unreached all;
  for (const Timepoint& timepoint : timepoints) all.push_back(&timepoint);
  HALYARD_TRY(FenceWait::begin(all, {.then = std::move(then)}));
  return {};
}

Result<> when_reached(const Fence* fence, Then then) {
  return when_reached(fence ? fence->timepoints() : std::span<const Timepoint>(), std::move(then));
}

}  // namespace halyard::hal
