// Messages of the validation layer, on their way to the host's log.
#include "validation.h"

#include <string_view>

namespace halyard::vulkan {

VkDebugUtilsMessengerCreateInfoEXT ValidationMessages::messenger() {
  return {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
          .messageSeverity =
              VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
          .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
          .pfnUserCallback = called,
          .pUserData = this};
}

VkBool32 VKAPI_PTR ValidationMessages::called(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                              VkDebugUtilsMessageTypeFlagsEXT,
                                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto& self = *static_cast<ValidationMessages*>(user);
  try {
    const std::string line =
        fmt::format("vulkan validation: {}: {}", data->pMessageIdName ? data->pMessageIdName : "(no id)",
                    data->pMessage ? data->pMessage : "");
    self.services_.log(self.services_.host, HALYARD_LOG_ERROR, line.data(), line.size());
    const std::lock_guard lock(self.mutex_);
    if (self.first_.empty()) self.first_ = line;
  } catch (const std::bad_alloc&) {  // counted all the same
  }
  self.count_.fetch_add(1, std::memory_order_relaxed);
  return VK_FALSE;  // the call goes on as it would without the layer
}

Result<> ValidationMessages::none() const {
  if (count() == 0) return {};
  const std::lock_guard lock(mutex_);
  return fail(Code::INTERNAL,
              "the device was opened with validate=1 and there were {} messages; the first: {}", count(),
              first_);
}

}  // namespace halyard::vulkan
