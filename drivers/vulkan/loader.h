// Loader: libvulkan, opened at run time, and its functions, named without the prefix `vk`. There are no
// globals: each instance and each device has its own table.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "status.h"

#ifndef VK_KHR_cooperative_matrix  // headers before 1.3.255
#define VK_KHR_cooperative_matrix 1
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr VkStructureType VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
constexpr VkStructureType VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
constexpr VkStructureType VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506002);
enum VkComponentTypeKHR : int32_t {
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR,
  VK_COMPONENT_TYPE_FLOAT64_KHR,
  VK_COMPONENT_TYPE_SINT8_KHR,
  VK_COMPONENT_TYPE_SINT16_KHR,
  VK_COMPONENT_TYPE_SINT32_KHR,
  VK_COMPONENT_TYPE_SINT64_KHR,
  VK_COMPONENT_TYPE_UINT8_KHR,
  VK_COMPONENT_TYPE_UINT16_KHR,
  VK_COMPONENT_TYPE_UINT32_KHR,
  VK_COMPONENT_TYPE_UINT64_KHR,
};
enum VkScopeKHR : int32_t { VK_SCOPE_SUBGROUP_KHR = 3 };
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
struct VkPhysicalDeviceCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  VkShaderStageFlags cooperativeMatrixSupportedStages;
};
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize;
  uint32_t NSize;
  uint32_t KSize;
  VkComponentTypeKHR AType;
  VkComponentTypeKHR BType;
  VkComponentTypeKHR CType;
  VkComponentTypeKHR ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = VkResult(VKAPI_PTR*)(
    VkPhysicalDevice device, uint32_t* count, VkCooperativeMatrixPropertiesKHR* properties);
#endif

namespace halyard::vulkan {

// The functions of an instance.
#define HALYARD_VULKAN_INSTANCE_FUNCTIONS(F)      \
  F(DestroyInstance)                              \
  F(EnumeratePhysicalDevices)                     \
  F(EnumerateDeviceExtensionProperties)           \
  F(GetPhysicalDeviceFeatures2)                   \
  F(GetPhysicalDeviceProperties)                  \
  F(GetPhysicalDeviceProperties2)                 \
  F(GetPhysicalDeviceMemoryProperties)            \
  F(GetPhysicalDeviceQueueFamilyProperties)       \
  F(GetPhysicalDeviceExternalBufferProperties)    \
  F(GetPhysicalDeviceExternalSemaphoreProperties) \
  F(CreateDevice)                                 \
  F(GetDeviceProcAddr)
#define HALYARD_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(F) \
  F(GetPhysicalDeviceCalibrateableTimeDomainsEXT)     \
  F(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)  \
  F(CreateDebugUtilsMessengerEXT)                     \
  F(DestroyDebugUtilsMessengerEXT)

// The functions of a device with Vulkan 1.2.
#define HALYARD_VULKAN_DEVICE_FUNCTIONS(F) \
  F(DestroyDevice)                         \
  F(DeviceWaitIdle)                        \
  F(GetDeviceQueue)                        \
  F(QueueSubmit)                           \
  F(AllocateMemory)                        \
  F(FreeMemory)                            \
  F(MapMemory)                             \
  F(UnmapMemory)                           \
  F(FlushMappedMemoryRanges)               \
  F(InvalidateMappedMemoryRanges)          \
  F(CreateBuffer)                          \
  F(DestroyBuffer)                         \
  F(GetBufferMemoryRequirements)           \
  F(BindBufferMemory)                      \
  F(GetBufferDeviceAddress)                \
  F(CreateSemaphore)                       \
  F(DestroySemaphore)                      \
  F(GetSemaphoreCounterValue)              \
  F(WaitSemaphores)                        \
  F(SignalSemaphore)                       \
  F(CreateShaderModule)                    \
  F(DestroyShaderModule)                   \
  F(CreatePipelineCache)                   \
  F(DestroyPipelineCache)                  \
  F(GetPipelineCacheData)                  \
  F(CreateComputePipelines)                \
  F(DestroyPipeline)                       \
  F(CreatePipelineLayout)                  \
  F(DestroyPipelineLayout)                 \
  F(CreateDescriptorSetLayout)             \
  F(DestroyDescriptorSetLayout)            \
  F(CreateDescriptorPool)                  \
  F(DestroyDescriptorPool)                 \
  F(ResetDescriptorPool)                   \
  F(AllocateDescriptorSets)                \
  F(UpdateDescriptorSets)                  \
  F(CreateCommandPool)                     \
  F(DestroyCommandPool)                    \
  F(ResetCommandPool)                      \
  F(AllocateCommandBuffers)                \
  F(BeginCommandBuffer)                    \
  F(EndCommandBuffer)                      \
  F(CmdPipelineBarrier)                    \
  F(CmdFillBuffer)                         \
  F(CmdUpdateBuffer)                       \
  F(CmdCopyBuffer)                         \
  F(CmdBindPipeline)                       \
  F(CmdBindDescriptorSets)                 \
  F(CmdPushConstants)                      \
  F(CmdDispatch)                           \
  F(CmdDispatchIndirect)                   \
  F(CreateQueryPool)                       \
  F(DestroyQueryPool)                      \
  F(ResetQueryPool)                        \
  F(GetQueryPoolResults)                   \
  F(CmdWriteTimestamp)
#define HALYARD_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(F) \
  F(CmdPushDescriptorSetKHR)                        \
  F(GetMemoryHostPointerPropertiesEXT)              \
  F(GetSemaphoreFdKHR)                              \
  F(ImportSemaphoreFdKHR)                           \
  F(GetCalibratedTimestampsEXT)                     \
  F(CmdBeginDebugUtilsLabelEXT)                     \
  F(CmdEndDebugUtilsLabelEXT)

#define HALYARD_VULKAN_MEMBER_(name) PFN_vk##name name = nullptr;

struct InstanceFunctions {
  HALYARD_VULKAN_INSTANCE_FUNCTIONS(HALYARD_VULKAN_MEMBER_)
  HALYARD_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(HALYARD_VULKAN_MEMBER_)
};

struct DeviceFunctions {
  HALYARD_VULKAN_DEVICE_FUNCTIONS(HALYARD_VULKAN_MEMBER_)
  HALYARD_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(HALYARD_VULKAN_MEMBER_)
};

#undef HALYARD_VULKAN_MEMBER_

// The library is never unloaded, because implementations leave threads and thread-local data behind.
struct Loader {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  PFN_vkCreateInstance CreateInstance = nullptr;
  PFN_vkEnumerateInstanceExtensionProperties EnumerateInstanceExtensionProperties = nullptr;
  PFN_vkEnumerateInstanceLayerProperties EnumerateInstanceLayerProperties = nullptr;
  uint32_t api_version = 0;  // of instances

  // UNAVAILABLE: there is no libvulkan, or it is older than Vulkan 1.2.
  static Result<Loader> open();
};

// INTERNAL, naming the missing function.
Result<InstanceFunctions> instance_functions(const Loader& loader, VkInstance instance);
Result<DeviceFunctions> device_functions(const InstanceFunctions& vk, VkDevice device);

// "VK_ERROR_OUT_OF_DEVICE_MEMORY"; unknown numbers as digits.
std::string name(VkResult result);
// Converts the result of the Vulkan function `call`: lack of memory is RESOURCE_EXHAUSTED, a lost device
// ABORTED, bytes that cannot be imported UNIMPLEMENTED, all others INTERNAL.
Result<> check(VkResult result, std::string_view call);
// "1.3.239"
std::string version_text(uint32_t version);

}  // namespace halyard::vulkan
