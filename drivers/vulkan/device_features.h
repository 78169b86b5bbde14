// Features: the features that a device has beyond Vulkan 1.2, those that are enabled when it is opened, and
// how programs query them. All features that compiled kernels may use are enabled, because their needs are
// unknown before they are loaded.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "vulkan_instance.h"

namespace halyard::vulkan {

// The purpose of opening a device.
struct FeatureChoice {
  bool traced = false;  // the host records a trace
  bool robust = true;   // bounds-check accesses to bindings
};

enum class CapabilityState : uint8_t {
  unknown,  // unknown to this driver; the Vulkan implementation decides
  present,
  missing,  // the device lacks it
  unused,   // this driver never enables it
};
struct CapabilityAnswer {
  CapabilityState state = CapabilityState::unknown;
  const char* feature = nullptr;  // name for messages; null if unknown
};

struct Features {
  // First as reported by the device, then as enabled.
  VkPhysicalDeviceFeatures core = {};
  VkPhysicalDeviceVulkan11Features vulkan11 = {};
  VkPhysicalDeviceVulkan12Features vulkan12 = {};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size = {};
  VkPhysicalDeviceShaderIntegerDotProductFeatures integer_dot_product = {};
  VkPhysicalDeviceSynchronization2Features synchronization2 = {};
  VkPhysicalDeviceMaintenance4Features maintenance4 = {};
  VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zero_initialize = {};
  VkPhysicalDeviceRobustness2FeaturesEXT robustness2 = {};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative_matrix = {};

  bool push_descriptors = false;
  bool import_host_memory = false;
  bool memory_descriptors = false;     // imports memory from opaque file descriptors
  bool semaphore_descriptors = false;  // timelines can be exported as opaque file descriptors
  bool calibrated_timestamps = false;  // can be read together with CLOCK_MONOTONIC

  VkPhysicalDeviceLimits limits = {};
  VkPhysicalDeviceSubgroupProperties subgroup = {};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes = {};
  VkPhysicalDeviceMaintenance3Properties maintenance3 = {};
  VkPhysicalDeviceIDProperties ids = {};
  std::vector<VkCooperativeMatrixPropertiesKHR> matrix_shapes;  // supported products
  VkShaderStageFlags matrix_stages = 0;
  uint32_t max_push_descriptors = 0;
  uint64_t host_pointer_alignment = 0;  // for imports
  uint64_t maximum_buffer = 0;          // bytes in one VkBuffer
  uint32_t api_version = 0;             // the lower one of instance and device

  bool buffer_addresses() const { return vulkan12.bufferDeviceAddress != 0; }
  bool cooperative_matrices() const {
    return cooperative_matrix.cooperativeMatrix && (matrix_stages & VK_SHADER_STAGE_COMPUTE_BIT);
  }

  // Queries the device and disables all features that are not wanted.
  static Result<Features> of(const VulkanInstance& instance, const PhysicalDevice& device,
                             const FeatureChoice& choice);
  // For vkCreateDevice. The pointers point into this object.
  std::vector<const char*> extensions;
  VkPhysicalDeviceFeatures2 chain();

  // Implements halyard_driver_table_t::device_query_i64, without the keys that depend on queues.
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;

  // Whether the device can run a shader that declares SPIR-V capability `number`.
  CapabilityAnswer capability(uint32_t number) const;
};

}  // namespace halyard::vulkan
