// VulkanInstance: a VkInstance and the physical devices that this driver can open. The driver has one
// instance for listing devices; a validating device has its own, with the validation layer.
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
  std::string path;  // the path of its URI: the UUID, or the ordinal if the UUID is not unique
};

class VulkanInstance {
 public:
  // UNAVAILABLE: no instance, no validation layer although requested, or no suitable device; the message
  // gives the reason for each device.
  static Result<std::unique_ptr<VulkanInstance>> create(const Services& services, bool validate);
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;
  ~VulkanInstance();

  const InstanceFunctions& vk() const { return vk_; }
  uint32_t api_version() const { return api_version_; }  // the requested version: 1.2 or 1.3
  bool has_debug_utils() const { return has_debug_utils_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }
  const ValidationMessages* messages() const { return messages_.get(); }  // null: it does not validate

  // Finds a device by ordinal ("0"), UUID ("GPU-0123...", also without dashes or without "GPU-") or name (the
  // whole name, or words of it that are not all numbers; case-insensitive). "" is the first device.
  // NOT_FOUND: no device, or several devices, have this UUID or name; lists the devices.
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

// The index that find() selects from a list of devices; separate, so that tests need no devices.
Result<size_t> choose_device(std::string_view path, const std::vector<PhysicalDevice>& devices);

}  // namespace halyard::vulkan
