// Features: what a device can do beyond Vulkan 1.2, which of it is turned on when the device is opened (all
// that compiled kernels may use: nothing says what one needs before it is loaded), and how programs ask for
// it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "instance.h"

namespace halyard::vulkan {

struct Features {
  // As the device has them, then as they are turned on.
  VkPhysicalDeviceFeatures core = {};
  VkPhysicalDeviceVulkan11Features vulkan11 = {};
  VkPhysicalDeviceVulkan12Features vulkan12 = {};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size = {};
  VkPhysicalDeviceShaderIntegerDotProductFeatures integer_dot_product = {};
  VkPhysicalDeviceSynchronization2Features synchronization2 = {};
  VkPhysicalDeviceMaintenance4Features maintenance4 = {};
  VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zero_initialize = {};

  bool push_descriptors = false;
  bool import_host_memory = false;
  bool semaphore_descriptors = false;  // timelines as opaque file descriptors
  bool calibrated_timestamps = false;  // read together with CLOCK_MONOTONIC

  VkPhysicalDeviceLimits limits = {};
  VkPhysicalDeviceSubgroupProperties subgroup = {};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes = {};
  VkPhysicalDeviceMaintenance3Properties maintenance3 = {};
  VkPhysicalDeviceIDProperties ids = {};
  uint32_t max_push_descriptors = 0;
  uint64_t host_pointer_alignment = 0;  // of imports
  uint64_t maximum_buffer = 0;          // bytes in one VkBuffer
  uint32_t api_version = 0;             // of instance and device together

  bool buffer_addresses() const { return vulkan12.bufferDeviceAddress != 0; }

  // Looks at the device; what is not wanted is off. `traced`: the host records a trace.
  static Result<Features> of(const VulkanInstance& instance, const PhysicalDevice& device, bool traced);
  // For vkCreateDevice. Pointers into this.
  std::vector<const char*> extensions;
  VkPhysicalDeviceFeatures2 chain();

  // As halyard_driver_table_t::device_query_i64, without what depends on queues.
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;
};

// Why a device with these features cannot run a shader that declares SPIR-V capability `capability`; null
// where it can, or where the capability is not known here (the Vulkan driver judges then).
const char* missing_for_capability(const Features& features, uint32_t capability);

}  // namespace halyard::vulkan
