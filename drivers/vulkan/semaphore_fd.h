// SharedSemaphore: a timeline semaphore of Vulkan's that another driver's device shares, through a file
// descriptor.
//
// The semaphores of programs are numbers of this driver's (timeline.h), so each export is a semaphore of its
// own, which follows one of them. Where the value is on its way on a queue, that queue signals it and the
// other device need not wait for the host; otherwise the host does when it sees the value. An import is
// waited for by the device; failures are brought to it by the host [R112].
#pragma once

#include <cstdint>
#include <utility>

#include "loader.h"
#include "status.h"

namespace halyard::vulkan {

class Device;
class Queue;

class SharedSemaphore {
 public:
  // At this value, to be exported. UNIMPLEMENTED: the device has no descriptors for semaphores.
  static Result<SharedSemaphore> create(Device& device, uint64_t initial);
  // To import into. The same failure.
  static Result<SharedSemaphore> create_empty(Device& device);
  SharedSemaphore(SharedSemaphore&& other) noexcept
      : device_(other.device_),
        handle_(std::exchange(other.handle_, VK_NULL_HANDLE)),
        queue_(other.queue_),
        number_(other.number_) {}
  SharedSemaphore& operator=(SharedSemaphore&&) = delete;
  ~SharedSemaphore();

  Device& device() const { return device_; }
  VkSemaphore handle() const { return handle_; }
  // Becomes what is behind the descriptor, which it takes over on success. INVALID_ARGUMENT: the device does
  // not know it.
  Result<> take(int32_t fd);
  Result<int32_t> descriptor() const;  // a new one, the caller's
  uint64_t value() const;
  // Values only grow, from call to call. Where the device is lost, nothing.
  void signal(uint64_t value);  // by the host; behind what a queue is to signal
  // By the queue, when it has done all it has now. False: it cannot.
  bool signal_behind(Queue& queue, uint64_t value);

 private:
  SharedSemaphore(Device& device, VkSemaphore handle) : device_(device), handle_(handle) {}

  Device& device_;
  VkSemaphore handle_ = VK_NULL_HANDLE;
  Queue* queue_ = nullptr;  // that signals it with submission `number_`
  uint64_t number_ = 0;
};

}  // namespace halyard::vulkan
