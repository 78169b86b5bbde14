// Blocks a host thread: on the device, if all awaited work is in flight there, otherwise until it is
// notified.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "device.h"
#include "timeline.h"

namespace halyard::vulkan {

namespace {

using kit::Timepoints;
using kit::WaitState;

WaitState look_at(Timepoints timepoints) {
  for (const halyard_timepoint_t& point : timepoints) point.semaphore->look();
  return kit::look_at<Semaphore>(timepoints);
}

// The Vulkan semaphores that stand for the timepoints that are not reached. Empty: they are not all on one
// device, or the device does not let callers wait.
class DeviceTimepoints {
 public:
  explicit DeviceTimepoints(Timepoints timepoints) {
    for (const halyard_timepoint_t& wanted : timepoints) {
      if (wanted.semaphore->progress(wanted.value) == Progress::reached) continue;
      const SharedSemaphore* const import = wanted.semaphore->import();
      const QueueSubmission submission = wanted.semaphore->promised(wanted.value);
      Device* const device = import             ? &import->device()
                             : submission.queue ? &submission.queue->device()
                                                : nullptr;
      const bool sees_to_it = device && device->options().inline_completion;
      const bool fits =
          device && count_ < kMaxWaits && (import || sees_to_it) && (!device_ || device_ == device);
      if (!fits) {
        count_ = 0;
        return;
      }
      device_ = device;
      queues_[count_] = submission.queue;
      semaphores_[count_] = import ? import->handle() : submission.queue->timeline();
      values_[count_] = import ? wanted.value : submission.number;
      ++count_;
    }
  }

  bool empty() const { return count_ == 0; }
  void retire(TaskList& ready) const {
    for (uint32_t i = 0; i < count_; ++i)
      if (queues_[i]) queues_[i]->retire(ready);
  }
  // Returns no result, because the caller checks the timelines again.
  void wait(bool any, int64_t deadline_ns, TaskList& ready) const {
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
      device_->lose(check(result, "vkWaitSemaphores").failure(), nullptr, ready);
    retire(ready);
  }

 private:
  static constexpr uint32_t kMaxWaits = 16;
  Device* device_ = nullptr;
  uint32_t count_ = 0;
  std::array<Queue*, kMaxWaits> queues_;  // null: for an import
  std::array<VkSemaphore, kMaxWaits> semaphores_;
  std::array<uint64_t, kMaxWaits> values_;
};

// Lets a thread wait on the device for an import, because an import sends no notifications. A separate
// semaphore ends that wait.
class ImportWatch {
 public:
  static Result<std::unique_ptr<ImportWatch>> start(Semaphore& semaphore, uint64_t value) {
    Device& device = semaphore.import()->device();
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkSemaphore end = VK_NULL_HANDLE;
    HALYARD_KIT_TRY(
        check(device.vk().CreateSemaphore(device.handle(), &info, nullptr, &end), "vkCreateSemaphore"));
    auto watch = std::unique_ptr<ImportWatch>(new ImportWatch(device, semaphore, value, end));
    watch->thread_ = std::thread([self = watch.get()] { self->watch(); });
    return watch;
  }
  ImportWatch(const ImportWatch&) = delete;
  ImportWatch& operator=(const ImportWatch&) = delete;
  ~ImportWatch() {
    const VkSemaphoreSignalInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = end_, .value = 1};
    (void)device_.vk().SignalSemaphore(device_.handle(), &info);
    if (thread_.joinable()) thread_.join();
    device_.vk().DestroySemaphore(device_.handle(), end_, nullptr);
  }

 private:
  ImportWatch(Device& device, Semaphore& semaphore, uint64_t value, VkSemaphore end)
      : device_(device), semaphore_(semaphore), value_(value), end_(end) {}

  void watch() {
    const VkSemaphore semaphores[] = {semaphore_.import()->handle(), end_};
    const uint64_t values[] = {value_, 1};
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .flags = VK_SEMAPHORE_WAIT_ANY_BIT,
                                      .semaphoreCount = 2,
                                      .pSemaphores = semaphores,
                                      .pValues = values};
    const VkResult result = device_.vk().WaitSemaphores(device_.handle(), &info, UINT64_MAX);
    if (result == VK_SUCCESS) {
      semaphore_.look();
      return;
    }
    TaskList ready;
    device_.lose(check(result, "vkWaitSemaphores").failure(), nullptr, ready);
    semaphore_.fail(device_.lost(), ready);
  }

  Device& device_;
  Semaphore& semaphore_;
  const uint64_t value_;
  const VkSemaphore end_;
  std::thread thread_;
};

}  // namespace

Status Device::wait(Timepoints timepoints, bool any, int64_t deadline_ns) {
  const size_t needed = kit::needed_of(timepoints, any);
  WaitState state = look_at(timepoints);
  if (!state.failure && state.reached < needed) {
    if (const DeviceTimepoints awaited(timepoints); !awaited.empty()) {
      TaskList ready;
      awaited.wait(any, deadline_ns, ready);
      run_ready(ready);
      state = look_at(timepoints);
    }
  }
  if (!state.failure && state.reached < needed && deadline_ns != 0) {
    std::vector<std::unique_ptr<ImportWatch>> watches;
    for (const halyard_timepoint_t& point : timepoints)
      if (point.semaphore->import() && point.semaphore->progress(point.value) == Progress::pending) {
        Result<std::unique_ptr<ImportWatch>> watch = ImportWatch::start(*point.semaphore, point.value);
        if (!watch) return {services(), watch.failure()};
        watches.push_back(std::move(*watch));
      }
    state = kit::block<Semaphore>(timepoints, any, deadline_ns);
  }
  return kit::outcome_of(services(), std::move(state), timepoints, any);
}

}  // namespace halyard::vulkan
