// SharedSemaphore: a Vulkan timeline semaphore that is shared with another driver's device through a file
// descriptor.
//
// The host's semaphores are timelines of this driver (timeline.h), so each export is a separate Vulkan
// semaphore that follows one of them. If work in flight on a queue will reach the value, that queue signals
// the export, so the other device need not wait for the host. Otherwise the host signals the export once it
// sees the value. The device itself waits for an import; the host passes failures on [R112].
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
  // Creates a semaphore with this value for export. UNIMPLEMENTED: the device has no semaphore descriptors.
  static Result<SharedSemaphore> create(Device& device, uint64_t initial);
  // Creates a semaphore to import into. UNIMPLEMENTED: like create().
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
  // Imports the descriptor's semaphore, and takes ownership of the descriptor on success. INVALID_ARGUMENT:
  // the device does not know it.
  Result<> take(int32_t fd);
  Result<int32_t> descriptor() const;  // a new descriptor, owned by the caller
  uint64_t value() const;
  // Values must increase from call to call. No effect if the device is lost.
  void signal(uint64_t value);  // by the host, after pending signals by a queue
  // Lets the queue signal when it has completed its current work. False: impossible, or another queue must
  // signal first.
  bool signal_behind(Queue& queue, uint64_t value);

 private:
  SharedSemaphore(Device& device, VkSemaphore handle) : device_(device), handle_(handle) {}

  Device& device_;
  VkSemaphore handle_ = VK_NULL_HANDLE;
  Queue* queue_ = nullptr;  // signals the semaphore with submission `number_`
  uint64_t number_ = 0;
};

}  // namespace halyard::vulkan
