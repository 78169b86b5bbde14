// How a thread of the host's waits for timelines: on the device, where all that it waits for is on its way
// there, else for somebody to tell it.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>

#include "device.h"
#include "timeline.h"

namespace halyard::vulkan {

namespace {

// A blocked thread, shared with the timelines that it waits for: whoever settles a wait may come after the
// thread has left.
struct Blocked {
  struct Wait : Waiter {
    std::shared_ptr<Blocked> owner;  // while on a list, or being settled
  };

  explicit Blocked(size_t count) : waits(count) {}

  std::mutex mutex;
  std::condition_variable changed;
  size_t reached = 0;
  HostStatus failure;
  std::vector<Wait> waits;

  void settle(HostStatus with) {
    {
      const std::lock_guard lock(mutex);
      if (!with) {
        ++reached;
      } else if (!failure) {
        failure = std::move(with);
      }
    }
    changed.notify_all();
  }
};

void wake(Waiter& waiter, HostStatus failure, DueList&) {
  const std::shared_ptr<Blocked> owner = std::move(static_cast<Blocked::Wait&>(waiter).owner);
  owner->settle(std::move(failure));
}

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTick(1);

using Timepoints = std::span<const halyard_timepoint_t>;

struct Standing {
  size_t reached = 0;
  HostStatus failure;
};

Standing look_at(Timepoints timepoints) {
  Standing standing;
  for (const halyard_timepoint_t& point : timepoints) {
    point.semaphore->look();
    const Progress progress = point.semaphore->progress(point.value);
    if (progress == Progress::failed) return {0, point.semaphore->failure()};
    if (progress == Progress::reached) ++standing.reached;
  }
  return standing;
}

// Until told. What is in flight is seen to by the threads of its queues.
Standing block(Timepoints timepoints, size_t needed, int64_t deadline_ns) {
  const auto blocked = std::make_shared<Blocked>(timepoints.size());
  for (size_t i = 0; i < timepoints.size(); ++i) {
    Blocked::Wait& wait = blocked->waits[i];
    wait.value = timepoints[i].value;
    wait.settled = wake;
    wait.owner = blocked;
    if (timepoints[i].semaphore->watch(wait)) continue;
    wait.owner.reset();
    blocked->settle(timepoints[i].semaphore->failure());
  }
  const auto done = [&] { return blocked->failure || blocked->reached >= needed; };
  // Nobody tells of an import, so it is looked at.
  const bool polls = std::ranges::any_of(
      timepoints, [](const halyard_timepoint_t& point) { return point.semaphore->import() != nullptr; });
  // CLOCK_MONOTONIC, as std::chrono::steady_clock
  const Clock::time_point deadline{std::chrono::nanoseconds(deadline_ns)};
  std::unique_lock lock(blocked->mutex);
  while (polls && !blocked->changed.wait_until(lock, std::min(deadline, Clock::now() + kTick), done) &&
         Clock::now() < deadline) {
    lock.unlock();
    for (const halyard_timepoint_t& point : timepoints) point.semaphore->look();
    lock.lock();
  }
  if (deadline_ns == HALYARD_WAIT_FOREVER) {
    blocked->changed.wait(lock, done);
  } else {
    blocked->changed.wait_until(lock, deadline, done);
  }
  Standing standing = {blocked->reached, blocked->failure};
  lock.unlock();
  for (size_t i = 0; i < timepoints.size(); ++i)
    if (timepoints[i].semaphore->unwatch(blocked->waits[i])) blocked->waits[i].owner.reset();
  return standing;
}

// Where those that are missing are on one device. Empty: not all of them, or not on one that lets callers
// wait.
class DevicePoints {
 public:
  explicit DevicePoints(Timepoints timepoints) {
    for (const halyard_timepoint_t& wanted : timepoints) {
      if (wanted.semaphore->progress(wanted.value) == Progress::reached) continue;
      const SharedSemaphore* const import = wanted.semaphore->import();
      const QueuePoint point = wanted.semaphore->promised(wanted.value);
      Device* const device = import ? &import->device() : point.queue ? &point.queue->device() : nullptr;
      const bool sees_to_it = device && (device->options().inline_completion || Queue::is_own_thread());
      const bool fits = device && count_ < kMost && (import || sees_to_it) && (!device_ || device_ == device);
      if (!fits) {
        count_ = 0;
        return;
      }
      device_ = device;
      queues_[count_] = point.queue;
      semaphores_[count_] = import ? import->handle() : point.queue->timeline();
      values_[count_] = import ? wanted.value : point.number;
      ++count_;
    }
  }

  bool empty() const { return count_ == 0; }
  void retire(DueList& due) const {
    for (uint32_t i = 0; i < count_; ++i)
      if (queues_[i]) queues_[i]->retire(due);
  }
  // Another look at the timelines shows what it came to.
  void wait(bool any, int64_t deadline_ns, DueList& due) const {
    uint64_t timeout = UINT64_MAX;
    if (deadline_ns != HALYARD_WAIT_FOREVER) {
      const int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
      timeout = deadline_ns > now ? static_cast<uint64_t>(deadline_ns - now) : 0;
    }
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .flags = any ? VkSemaphoreWaitFlags{VK_SEMAPHORE_WAIT_ANY_BIT} : VkSemaphoreWaitFlags{},
        .semaphoreCount = count_,
        .pSemaphores = semaphores_.data(),
        .pValues = values_.data()};
    const VkResult result = device_->vk().WaitSemaphores(device_->handle(), &info, timeout);
    if (result != VK_SUCCESS && result != VK_TIMEOUT)
      device_->lose(check(result, "vkWaitSemaphores").error(), nullptr, due);
    retire(due);
  }

 private:
  static constexpr uint32_t kMost = 16;
  Device* device_ = nullptr;
  uint32_t count_ = 0;
  std::array<Queue*, kMost> queues_;  // null: of an import
  std::array<VkSemaphore, kMost> semaphores_;
  std::array<uint64_t, kMost> values_;
};

}  // namespace

HostStatus wait_for(const Services& services, Timepoints timepoints, bool any, int64_t deadline_ns) {
  const size_t needed = any && !timepoints.empty() ? 1 : timepoints.size();
  Standing standing = look_at(timepoints);
  if (!standing.failure && standing.reached < needed) {
    if (const DevicePoints points(timepoints); !points.empty()) {
      DueList due;
      points.wait(any, deadline_ns, due);
      due.run();
      standing = look_at(timepoints);
    }
  }
  if (!standing.failure && standing.reached < needed && deadline_ns != 0)
    standing = block(timepoints, needed, deadline_ns);
  if (standing.failure) return std::move(standing.failure);
  if (standing.reached >= needed) return {};
  return {services,
          {Code::DEADLINE_EXCEEDED, fmt::format("the deadline passed with {} of {} timepoints reached",
                                                standing.reached, timepoints.size())}};
}

}  // namespace halyard::vulkan
