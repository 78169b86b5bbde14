// Messages of the Khronos validation layer about this driver. Every message is an error: it is logged and
// counted, and the device then refuses work, so that no test ignores it.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "loader.h"

namespace halyard::vulkan {

class ValidationMessages {
 public:
  explicit ValidationMessages(const Services& services) : services_(services) {}
  ValidationMessages(const ValidationMessages&) = delete;
  ValidationMessages& operator=(const ValidationMessages&) = delete;

  // Lets an instance report to this object: for VkInstanceCreateInfo::pNext, and for a messenger.
  VkDebugUtilsMessengerCreateInfoEXT messenger();
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  // INTERNAL, with the first message, if there has been a message.
  Result<> none() const;

 private:
  static VkBool32 VKAPI_PTR called(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                   const VkDebugUtilsMessengerCallbackDataEXT* data, void* user);

  const Services& services_;
  std::atomic<uint32_t> count_ = 0;
  mutable std::mutex mutex_;
  std::string first_;
};

}  // namespace halyard::vulkan
