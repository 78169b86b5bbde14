// Features: what a device can do beyond Vulkan 1.2, which of it is turned on when the device is opened (all
// that compiled kernels may use: nothing says what one needs before it is loaded), and how programs ask for
// it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "instance.h"

namespace halyard::vulkan {

// What a device is opened for.
struct FeatureChoice {
  bool traced = false;  // the host records a trace
  bool robust = true;   // accesses beyond a binding are bounded
};

enum class CapabilityState : uint8_t {
  unknown,  // here; the Vulkan driver judges
  present,
  missing,  // the device has it not
  unused,   // this driver turns it on for no device
};
struct CapabilityAnswer {
  CapabilityState state = CapabilityState::unknown;
  const char* feature = nullptr;  // its name, for messages; null where unknown
};

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
  VkPhysicalDeviceRobustness2FeaturesEXT robustness2 = {};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative_matrix = {};

  bool push_descriptors = false;
  bool import_host_memory = false;
  bool semaphore_descriptors = false;  // timelines as opaque file descriptors
  bool calibrated_timestamps = false;  // read together with CLOCK_MONOTONIC

  VkPhysicalDeviceLimits limits = {};
  VkPhysicalDeviceSubgroupProperties subgroup = {};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes = {};
  VkPhysicalDeviceMaintenance3Properties maintenance3 = {};
  VkPhysicalDeviceIDProperties ids = {};
  std::vector<VkCooperativeMatrixPropertiesKHR> matrix_shapes;  // products of cooperative matrices
  VkShaderStageFlags matrix_stages = 0;
  uint32_t max_push_descriptors = 0;
  uint64_t host_pointer_alignment = 0;  // of imports
  uint64_t maximum_buffer = 0;          // bytes in one VkBuffer
  uint32_t api_version = 0;             // of instance and device together

  bool buffer_addresses() const { return vulkan12.bufferDeviceAddress != 0; }
  bool cooperative_matrices() const {
    return cooperative_matrix.cooperativeMatrix && (matrix_stages & VK_SHADER_STAGE_COMPUTE_BIT);
  }

  // Looks at the device; what is not wanted is off.
  static Result<Features> of(const VulkanInstance& instance, const PhysicalDevice& device,
                             const FeatureChoice& choice);
  // For vkCreateDevice. Pointers into this.
  std::vector<const char*> extensions;
  VkPhysicalDeviceFeatures2 chain();

  // As halyard_driver_table_t::device_query_i64, without what depends on queues.
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;

  // Whether the device can run a shader that declares SPIR-V capability `number`.
  CapabilityAnswer capability(uint32_t number) const;
};

}  // namespace halyard::vulkan
