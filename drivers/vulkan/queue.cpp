// The timeline semaphore of a queue, and semaphores of other drivers that it signals. queue_in_flight.cpp
// contains the functions that handle work.
#include "queue.h"

#include <new>

namespace halyard::vulkan {

uint64_t Queue::done_now() const {
  uint64_t value = 0;
  if (vk_.GetSemaphoreCounterValue(vk_device_, timeline_, &value) == VK_SUCCESS &&
      value != UINT64_MAX) {  // some implementations return this for a lost device
    uint64_t known = done_.load(std::memory_order_relaxed);
    while (known < value && !done_.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {
    }
  }
  return done_.load(std::memory_order_acquire);
}

bool Queue::has_done(uint64_t number) const {
  return done_.load(std::memory_order_acquire) >= number || done_now() >= number;
}

VkResult Queue::wait_for(uint64_t number) const {
  const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &timeline_,
                                    .pValues = &number};
  return vk_.WaitSemaphores(vk_device_, &wait, UINT64_MAX);
}

void Queue::want(uint64_t number) {
  uint64_t known = wanted_;
  while (known < number && !wanted_.compare_exchange_weak(known, number)) {
  }
  if (known < number && !is_awake_) timer_.set(TimerFd::kNow);
}

VkResult Queue::submit_alone(VkCommandBuffer commands, VkSemaphore semaphore, uint64_t value,
                             uint64_t& number) {
  const std::lock_guard lock(mutex_);
  number = submitted_ + 1;
  const uint32_t signals = semaphore ? 2 : 1;
  const VkSemaphore semaphores[] = {timeline_, semaphore};
  const uint64_t values[] = {number, value};
  const VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                  .signalSemaphoreValueCount = signals,
                                                  .pSignalSemaphoreValues = values};
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                             .pNext = &timeline,
                             .commandBufferCount = commands ? 1u : 0u,
                             .pCommandBuffers = &commands,
                             .signalSemaphoreCount = signals,
                             .pSignalSemaphores = semaphores};
  const VkResult result = vk_.QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE);
  if (result == VK_SUCCESS) submitted_ = number;
  return result;
}

uint64_t Queue::signal(VkSemaphore semaphore, uint64_t value) {
  uint64_t number = 0;
  return submit_alone(VK_NULL_HANDLE, semaphore, value, number) == VK_SUCCESS ? number : 0;
}

Result<> Queue::run_now(VkCommandBuffer commands) {
  uint64_t number = 0;
  HALYARD_KIT_TRY(check(submit_alone(commands, VK_NULL_HANDLE, 0, number), "vkQueueSubmit"));
  return check(wait_for(number), "vkWaitSemaphores");
}

void Queue::destroy_behind(VkSemaphore semaphore, uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(doomed_, [&](const Doomed& doomed) {
    if (!has_done(doomed.number)) return false;
    vk_.DestroySemaphore(vk_device_, doomed.semaphore, nullptr);
    return true;
  });
  if (!has_done(number)) {
    try {
      doomed_.push_back({semaphore, number});
      return;
    } catch (const std::bad_alloc&) {
      (void)wait_for(number);
    }
  }
  vk_.DestroySemaphore(vk_device_, semaphore, nullptr);
}

}  // namespace halyard::vulkan
