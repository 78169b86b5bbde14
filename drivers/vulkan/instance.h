// VulkanInstance: a VkInstance and the physical devices that this driver can open through it. The driver has
// one to list devices; a device that validates has one of its own, with the layer.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loader.h"
#include "validation.h"

namespace halyard::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties = {};
  std::string uuid;  // "GPU-" and 32 hexadecimal digits
  std::string path;  // what stands in its URI: the UUID, or the ordinal where the UUID is not unique
};

class VulkanInstance {
 public:
  // UNAVAILABLE: no instance, no validation layer where it is asked for, or no device that fits; the message
  // says why each does not.
  static Result<std::unique_ptr<VulkanInstance>> create(const Services& services, bool validate);
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;
  ~VulkanInstance();

  const InstanceFunctions& vk() const { return vk_; }
  uint32_t api_version() const { return api_version_; }  // that was asked for: 1.2 or 1.3
  bool has_debug_utils() const { return has_debug_utils_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }
  const ValidationMessages* messages() const { return messages_.get(); }  // null: it does not validate

  // By ordinal ("0"), UUID ("GPU-0123...", with or without dashes, or without "GPU-") or name (the whole one,
  // or a part that only one device has; no difference between upper and lower case). "": the first. NOT_FOUND
  // names what there is.
  Result<const PhysicalDevice*> find(std::string_view path) const;

 private:
  VulkanInstance() = default;
  Result<> start(const Services& services, bool validate);
  Result<> look_for_devices();

  Loader loader_;
  std::unique_ptr<ValidationMessages> messages_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  InstanceFunctions vk_;
  uint32_t api_version_ = 0;
  bool has_debug_utils_ = false;
  std::vector<PhysicalDevice> devices_;
};

// Which device of a list is meant; the position in it. What find() does, for tests without those devices.
Result<size_t> choose_device(std::string_view path, const std::vector<PhysicalDevice>& devices);

}  // namespace halyard::vulkan
