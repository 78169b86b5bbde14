// Passes messages of the validation layer to the host's log.
#include "validation.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace halyard::vulkan {

namespace {

// Messages that do not concern this driver.
constexpr std::string_view kExpected[] = {
    // Caused by `validate` itself: the extensions that carry the messages.
    "UNASSIGNED-BestPractices-vkCreateInstance-specialuse-extension-debugging",
    // Imports have the size of the host's bytes. The driver's own allocations are never small.
    "UNASSIGNED-BestPractices-vkAllocateMemory-small-allocation",
    "UNASSIGNED-BestPractices-vkBindMemory-small-dedicated-allocation",
    // About the compilation of a kernel, which belongs to the program.
    "UNASSIGNED-BestPractices-SpirvDeprecated_WorkgroupSize",
};

// The names of the layer's own messages have these forms. Implementations also report here, for example
// Mesa's compiler about a kernel, with a source line as the name.
bool is_of_layer(std::string_view name) {
  return name.starts_with("VUID-") || name.starts_with("UNASSIGNED-") || name.starts_with("SYNC-") ||
         name.starts_with("BestPractices-");
}

}  // namespace

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
  const std::string_view name = data->pMessageIdName ? data->pMessageIdName : "";
  if (!is_of_layer(name) || std::ranges::find(kExpected, name) != std::end(kExpected)) return VK_FALSE;
  try {
    const std::string line =
        fmt::format("vulkan validation: {}: {}", name, data->pMessage ? data->pMessage : "");
    self.services_.log(self.services_.host, HALYARD_LOG_ERROR, line.data(), line.size());
    const std::lock_guard lock(self.mutex_);
    if (self.first_.empty()) self.first_ = line;
  } catch (const std::bad_alloc&) {  // the message has been counted
  }
  self.count_.fetch_add(1, std::memory_order_relaxed);
  return VK_FALSE;  // continue as without the layer
}

Result<> ValidationMessages::none() const {
  if (count() == 0) return {};
  const std::lock_guard lock(mutex_);
  return fail(HALYARD_INTERNAL,
              "the device was opened with validate=1 and there were {} messages; the first: {}", count(),
              first_);
}

}  // namespace halyard::vulkan
