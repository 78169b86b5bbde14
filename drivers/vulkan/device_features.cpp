// Tables of features: the enabled features, the features that SPIR-V capabilities need, and the features that
// queries report.
#include "device_features.h"

#include <algorithm>

namespace halyard::vulkan {

namespace {

// Keeps the wanted features that the device has.
template <typename T>
void keep(T& features, std::initializer_list<VkBool32 T::*> wanted) {
  T kept = {};
  kept.sType = features.sType;
  for (VkBool32 T::* feature : wanted) kept.*feature = features.*feature;
  features = kept;
}

void keep_wanted(Features& features, bool robust) {
  VkPhysicalDeviceFeatures core = {};
  core.robustBufferAccess = robust && features.core.robustBufferAccess;
  core.shaderInt64 = features.core.shaderInt64;
  core.shaderInt16 = features.core.shaderInt16;
  core.shaderFloat64 = features.core.shaderFloat64;
  features.core = core;
  using V11 = VkPhysicalDeviceVulkan11Features;
  keep(features.vulkan11,
       {&V11::storageBuffer16BitAccess, &V11::uniformAndStorageBuffer16BitAccess, &V11::storagePushConstant16,
        &V11::variablePointersStorageBuffer, &V11::variablePointers});
  using V12 = VkPhysicalDeviceVulkan12Features;
  keep(features.vulkan12,
       {&V12::storageBuffer8BitAccess, &V12::uniformAndStorageBuffer8BitAccess, &V12::storagePushConstant8,
        &V12::shaderBufferInt64Atomics, &V12::shaderSharedInt64Atomics, &V12::shaderFloat16, &V12::shaderInt8,
        &V12::scalarBlockLayout, &V12::uniformBufferStandardLayout, &V12::shaderSubgroupExtendedTypes,
        &V12::hostQueryReset, &V12::timelineSemaphore, &V12::bufferDeviceAddress, &V12::vulkanMemoryModel,
        &V12::vulkanMemoryModelDeviceScope, &V12::vulkanMemoryModelAvailabilityVisibilityChains});
  using Robustness2 = VkPhysicalDeviceRobustness2FeaturesEXT;
  keep(features.robustness2, {&Robustness2::robustBufferAccess2});
  if (!core.robustBufferAccess) features.robustness2.robustBufferAccess2 = VK_FALSE;  // requires it
}

bool has(const std::vector<VkExtensionProperties>& list, std::string_view name) {
  return std::ranges::any_of(
      list, [&](const VkExtensionProperties& extension) { return name == extension.extensionName; });
}

// A chain of structs that Vulkan fills or reads.
class Chain {
 public:
  template <typename Struct>
  void add(Struct& link, VkStructureType type) {
    link.sType = type;
    link.pNext = first_;
    first_ = &link;
  }
  void* first() const { return first_; }

 private:
  void* first_ = nullptr;
};

// Whether timelines can be exported and imported as opaque descriptors.
bool passes_timelines(const InstanceFunctions& vk, VkPhysicalDevice device) {
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkPhysicalDeviceExternalSemaphoreInfo info = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
      .pNext = &type,
      .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkExternalSemaphoreProperties found = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
  vk.GetPhysicalDeviceExternalSemaphoreProperties(device, &info, &found);
  constexpr VkExternalSemaphoreFeatureFlags kBoth =
      VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
  return (found.externalSemaphoreFeatures & kBoth) == kBoth;
}

// Whether memory for buffers can be imported from opaque descriptors, without a dedicated allocation for each
// buffer of the exporter.
bool imports_memory(const InstanceFunctions& vk, VkPhysicalDevice device) {
  const VkPhysicalDeviceExternalBufferInfo info = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
      .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
      .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkExternalBufferProperties found = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  vk.GetPhysicalDeviceExternalBufferProperties(device, &info, &found);
  const VkExternalMemoryFeatureFlags can = found.externalMemoryProperties.externalMemoryFeatures;
  return (can & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) &&
         !(can & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT);
}

// Whether timestamps can be read together with the host's clock.
bool relates_clocks(const InstanceFunctions& vk, VkPhysicalDevice device) {
  uint32_t count = 0;
  if (!vk.GetPhysicalDeviceCalibrateableTimeDomainsEXT ||
      vk.GetPhysicalDeviceCalibrateableTimeDomainsEXT(device, &count, nullptr) != VK_SUCCESS)
    return false;
  std::vector<VkTimeDomainEXT> domains(count);
  if (vk.GetPhysicalDeviceCalibrateableTimeDomainsEXT(device, &count, domains.data()) != VK_SUCCESS)
    return false;
  const auto offers = [&](VkTimeDomainEXT domain) {
    return std::ranges::find(domains, domain) != domains.end();
  };
  return offers(VK_TIME_DOMAIN_DEVICE_EXT) && offers(VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT);
}

constexpr VkStructureType kVulkan11 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
constexpr VkStructureType kVulkan12 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
constexpr VkStructureType kSubgroupSize = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
constexpr VkStructureType kDotProduct = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
constexpr VkStructureType kSynchronization2 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES;
constexpr VkStructureType kMaintenance4 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES;
constexpr VkStructureType kZeroInitialize =
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES;
constexpr VkStructureType kRobustness2 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT;
constexpr VkStructureType kCooperativeMatrix =
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;

// The device's products of cooperative matrices.
Result<std::vector<VkCooperativeMatrixPropertiesKHR>> find_matrix_shapes(const InstanceFunctions& vk,
                                                                         VkPhysicalDevice device) {
  constexpr const char* kName = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
  uint32_t count = 0;
  HALYARD_KIT_TRY(check(vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, nullptr), kName));
  std::vector<VkCooperativeMatrixPropertiesKHR> shapes(
      count, {.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
  HALYARD_KIT_TRY(
      check(vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, shapes.data()), kName));
  shapes.resize(count);
  return shapes;
}

}  // namespace

Result<Features> Features::of(const VulkanInstance& instance, const PhysicalDevice& device,
                              const FeatureChoice& choice) {
  const InstanceFunctions& vk = instance.vk();
  Features features;
  features.api_version = std::min(instance.api_version(), device.properties.apiVersion);
  uint32_t count = 0;
  HALYARD_KIT_TRY(check(vk.EnumerateDeviceExtensionProperties(device.handle, nullptr, &count, nullptr),
                        "vkEnumerateDeviceExtensionProperties"));
  std::vector<VkExtensionProperties> available(count);
  HALYARD_KIT_TRY(
      check(vk.EnumerateDeviceExtensionProperties(device.handle, nullptr, &count, available.data()),
            "vkEnumerateDeviceExtensionProperties"));
  const auto use = [&](const char* name) {
    if (!has(available, name)) return false;
    features.extensions.push_back(name);
    return true;
  };
  // Core in 1.3, otherwise an extension.
  const auto promoted = [&](const char* name) {
    return features.api_version >= VK_API_VERSION_1_3 || use(name);
  };
  features.push_descriptors = use(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
  features.import_host_memory = use(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  features.memory_descriptors =
      imports_memory(vk, device.handle) && use(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  features.semaphore_descriptors =
      passes_timelines(vk, device.handle) && use(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  features.calibrated_timestamps =
      choice.traced && has(available, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) &&
      relates_clocks(vk, device.handle) && use(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  use("VK_KHR_portability_subset");  // must be enabled if the device has it

  Chain chain;
  chain.add(features.vulkan11, kVulkan11);
  chain.add(features.vulkan12, kVulkan12);
  Chain properties;
  if (promoted(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    chain.add(features.subgroup_size, kSubgroupSize);
    properties.add(features.subgroup_sizes,
                   VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  }
  if (promoted(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME))
    chain.add(features.integer_dot_product, kDotProduct);
  if (promoted(VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME))
    chain.add(features.synchronization2, kSynchronization2);
  VkPhysicalDeviceMaintenance4Properties maintenance4_properties = {};
  if (promoted(VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) {
    chain.add(features.maintenance4, kMaintenance4);
    properties.add(maintenance4_properties, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
  }
  if (promoted(VK_KHR_ZERO_INITIALIZE_WORKGROUP_MEMORY_EXTENSION_NAME))
    chain.add(features.zero_initialize, kZeroInitialize);
  if (choice.robust && use(VK_EXT_ROBUSTNESS_2_EXTENSION_NAME)) chain.add(features.robustness2, kRobustness2);
  VkPhysicalDeviceCooperativeMatrixPropertiesKHR matrices = {};
  if (vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR && use(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) {
    chain.add(features.cooperative_matrix, kCooperativeMatrix);
    properties.add(matrices, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
    features.matrix_shapes = HALYARD_KIT_TRY(find_matrix_shapes(vk, device.handle));
  }

  VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                   .pNext = chain.first()};
  vk.GetPhysicalDeviceFeatures2(device.handle, &all);
  features.core = all.features;
  keep_wanted(features, choice.robust);

  VkPhysicalDevicePushDescriptorPropertiesKHR push = {};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {};
  properties.add(features.subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  properties.add(features.maintenance3, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  properties.add(features.ids, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  if (features.push_descriptors)
    properties.add(push, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR);
  if (features.import_host_memory)
    properties.add(host, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
  VkPhysicalDeviceProperties2 described = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = properties.first()};
  vk.GetPhysicalDeviceProperties2(device.handle, &described);
  features.limits = described.properties.limits;
  features.max_push_descriptors = push.maxPushDescriptors;
  features.matrix_stages = matrices.cooperativeMatrixSupportedStages;
  features.host_pointer_alignment = host.minImportedHostPointerAlignment;
  features.maximum_buffer = features.maintenance3.maxMemoryAllocationSize;
  if (features.maintenance4.maintenance4 && maintenance4_properties.maxBufferSize != 0)
    features.maximum_buffer =
        std::min<uint64_t>(features.maximum_buffer, maintenance4_properties.maxBufferSize);
  return features;
}

VkPhysicalDeviceFeatures2 Features::chain() {
  Chain chain;
  chain.add(vulkan11, kVulkan11);
  chain.add(vulkan12, kVulkan12);
  if (subgroup_size.sType) chain.add(subgroup_size, kSubgroupSize);
  if (integer_dot_product.sType) chain.add(integer_dot_product, kDotProduct);
  if (synchronization2.sType) chain.add(synchronization2, kSynchronization2);
  if (maintenance4.sType) chain.add(maintenance4, kMaintenance4);
  if (zero_initialize.sType) chain.add(zero_initialize, kZeroInitialize);
  if (robustness2.sType) chain.add(robustness2, kRobustness2);
  if (cooperative_matrix.sType) chain.add(cooperative_matrix, kCooperativeMatrix);
  return {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = chain.first(), .features = core};
}

namespace {

bool subgroups(const Features& features, VkSubgroupFeatureFlags wanted) {
  return (features.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
         (features.subgroup.supportedOperations & wanted) == wanted;
}

// f16 times f16, 16x16x16, accumulated in f16.
bool multiplies_half_matrices(const Features& features) {
  return features.cooperative_matrices() &&
         std::ranges::any_of(features.matrix_shapes, [](const VkCooperativeMatrixPropertiesKHR& shape) {
           return shape.MSize == 16 && shape.NSize == 16 && shape.KSize == 16 &&
                  shape.scope == VK_SCOPE_SUBGROUP_KHR && shape.AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
                  shape.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
                  shape.CType == VK_COMPONENT_TYPE_FLOAT16_KHR;
         });
}

struct Query {
  const char* category;
  const char* key;
  int64_t (*answer)(const Features& features);
};
using F = const Features&;
constexpr Query kQueries[] = {
    // Queries of compilers up to v3.11: bit sets.
    {"hal.dispatch", "compute.bitwidths.fp",
     [](F f) -> int64_t { return (f.vulkan12.shaderFloat16 ? 1 : 0) | (f.core.shaderFloat64 ? 2 : 0); }},
    {"hal.dispatch", "compute.bitwidths.int",
     [](F f) -> int64_t {
       return (f.vulkan12.shaderInt8 ? 1 : 0) | (f.core.shaderInt16 ? 2 : 0) | (f.core.shaderInt64 ? 4 : 0);
     }},
    {"hal.dispatch", "storage.bitwidths",
     [](F f) -> int64_t {
       return (f.vulkan12.storageBuffer8BitAccess ? 1 : 0) | (f.vulkan11.storageBuffer16BitAccess ? 2 : 0);
     }},
    {"hal.dispatch", "subgroup.ops",
     [](F f) -> int64_t {
       return (subgroups(f, VK_SUBGROUP_FEATURE_SHUFFLE_BIT) ? 1 : 0) |
              (subgroups(f, VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) ? 2 : 0);
     }},
    {"hal.dispatch", "dotprod.ops",
     [](F f) -> int64_t { return f.integer_dot_product.shaderIntegerDotProduct ? 1 : 0; }},
    {"hal.dispatch", "coopmatrix.ops", [](F f) -> int64_t { return multiplies_half_matrices(f) ? 1 : 0; }},
    {"hal.dispatch", "address.mode", [](F f) -> int64_t { return f.buffer_addresses() ? 1 : 0; }},
    {"hal.dispatch", "concurrency", [](F) -> int64_t { return 1; }},
    // Queries of current compilers.
    {"vulkan.device", "api_version", [](F f) -> int64_t { return f.api_version; }},
    {"vulkan.device", "subgroup_size", [](F f) -> int64_t { return f.subgroup.subgroupSize; }},
    {"vulkan.device", "max_compute_workgroup_invocations",
     [](F f) -> int64_t { return f.limits.maxComputeWorkGroupInvocations; }},
    {"vulkan.device", "max_compute_workgroup_size_x",
     [](F f) -> int64_t { return f.limits.maxComputeWorkGroupSize[0]; }},
    {"vulkan.device", "max_compute_workgroup_size_y",
     [](F f) -> int64_t { return f.limits.maxComputeWorkGroupSize[1]; }},
    {"vulkan.device", "max_compute_workgroup_size_z",
     [](F f) -> int64_t { return f.limits.maxComputeWorkGroupSize[2]; }},
    {"vulkan.device", "max_compute_workgroup_count_x",
     [](F f) -> int64_t { return f.limits.maxComputeWorkGroupCount[0]; }},
    {"vulkan.device", "max_compute_workgroup_count_y",
     [](F f) -> int64_t { return f.limits.maxComputeWorkGroupCount[1]; }},
    {"vulkan.device", "max_compute_workgroup_count_z",
     [](F f) -> int64_t { return f.limits.maxComputeWorkGroupCount[2]; }},
    {"vulkan.feature", "buffer_device_address", [](F f) -> int64_t { return f.buffer_addresses(); }},
    {"vulkan.feature", "physical_storage_buffer64", [](F f) -> int64_t { return f.buffer_addresses(); }},
    {"vulkan.feature", "subgroup_size_control",
     [](F f) -> int64_t { return f.subgroup_size.subgroupSizeControl; }},
    {"vulkan.feature", "cooperative_matrix_khr", [](F f) -> int64_t { return f.cooperative_matrices(); }},
    {"vulkan.feature", "storage_buffer_8bit_access",
     [](F f) -> int64_t { return f.vulkan12.storageBuffer8BitAccess; }},
    {"vulkan.feature", "storage_buffer_16bit_access",
     [](F f) -> int64_t { return f.vulkan11.storageBuffer16BitAccess; }},
    {"vulkan.feature", "shader_float16", [](F f) -> int64_t { return f.vulkan12.shaderFloat16; }},
    {"vulkan.feature", "shader_float64", [](F f) -> int64_t { return f.core.shaderFloat64; }},
    {"vulkan.feature", "shader_bfloat16_type", [](F) -> int64_t { return 0; }},
    {"vulkan.feature", "shader_bfloat16_dot_product", [](F) -> int64_t { return 0; }},
    {"vulkan.feature", "shader_bfloat16_cooperative_matrix", [](F) -> int64_t { return 0; }},
    {"vulkan.feature", "shader_int8", [](F f) -> int64_t { return f.vulkan12.shaderInt8; }},
    {"vulkan.feature", "shader_int16", [](F f) -> int64_t { return f.core.shaderInt16; }},
    {"vulkan.feature", "shader_int64", [](F f) -> int64_t { return f.core.shaderInt64; }},
    {"vulkan.feature", "shader_integer_dot_product",
     [](F f) -> int64_t { return f.integer_dot_product.shaderIntegerDotProduct; }},
    {"vulkan.feature", "vulkan_memory_model", [](F f) -> int64_t { return f.vulkan12.vulkanMemoryModel; }},
    {"vulkan.feature", "vulkan_memory_model_device_scope",
     [](F f) -> int64_t { return f.vulkan12.vulkanMemoryModelDeviceScope; }},
    {"vulkan.feature", "robust_buffer_access", [](F f) -> int64_t { return f.core.robustBufferAccess; }},
    {"vulkan.cooperative_matrix", "supported", [](F f) -> int64_t { return f.cooperative_matrices(); }},
    {"vulkan.cooperative_matrix", "property_count",
     [](F f) -> int64_t { return static_cast<int64_t>(f.matrix_shapes.size()); }},
    {"vulkan.cooperative_matrix", "supported_stages", [](F f) -> int64_t { return f.matrix_stages; }},
};

// Numbers of the SPIR-V specification, 3.31.
struct Capability {
  uint32_t number;
  const char* feature;
  bool (*has)(const Features& features);  // null: never enabled
};
constexpr Capability kCapabilities[] = {
    {9, "16-bit floats (shaderFloat16)", [](F f) -> bool { return f.vulkan12.shaderFloat16; }},
    {10, "64-bit floats (shaderFloat64)", [](F f) -> bool { return f.core.shaderFloat64; }},
    {11, "64-bit integers (shaderInt64)", [](F f) -> bool { return f.core.shaderInt64; }},
    {12, "64-bit atomics (shaderBufferInt64Atomics)",
     [](F f) -> bool { return f.vulkan12.shaderBufferInt64Atomics || f.vulkan12.shaderSharedInt64Atomics; }},
    {22, "16-bit integers (shaderInt16)", [](F f) -> bool { return f.core.shaderInt16; }},
    {39, "8-bit integers (shaderInt8)", [](F f) -> bool { return f.vulkan12.shaderInt8; }},
    {61, "subgroup operations (basic)",
     [](F f) -> bool { return subgroups(f, VK_SUBGROUP_FEATURE_BASIC_BIT); }},
    {62, "subgroup operations (vote)",
     [](F f) -> bool { return subgroups(f, VK_SUBGROUP_FEATURE_VOTE_BIT); }},
    {63, "subgroup operations (arithmetic)",
     [](F f) -> bool { return subgroups(f, VK_SUBGROUP_FEATURE_ARITHMETIC_BIT); }},
    {64, "subgroup operations (ballot)",
     [](F f) -> bool { return subgroups(f, VK_SUBGROUP_FEATURE_BALLOT_BIT); }},
    {65, "subgroup operations (shuffle)",
     [](F f) -> bool { return subgroups(f, VK_SUBGROUP_FEATURE_SHUFFLE_BIT); }},
    {66, "subgroup operations (relative shuffle)",
     [](F f) -> bool { return subgroups(f, VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT); }},
    {67, "subgroup operations (clustered)",
     [](F f) -> bool { return subgroups(f, VK_SUBGROUP_FEATURE_CLUSTERED_BIT); }},
    {68, "subgroup operations (quad)",
     [](F f) -> bool { return subgroups(f, VK_SUBGROUP_FEATURE_QUAD_BIT); }},
    {4433, "16-bit storage buffers (storageBuffer16BitAccess)",
     [](F f) -> bool { return f.vulkan11.storageBuffer16BitAccess; }},
    {4434, "16-bit uniform buffers (uniformAndStorageBuffer16BitAccess)",
     [](F f) -> bool { return f.vulkan11.uniformAndStorageBuffer16BitAccess; }},
    {4435, "16-bit push constants (storagePushConstant16)",
     [](F f) -> bool { return f.vulkan11.storagePushConstant16; }},
    {4441, "variable pointers into storage buffers (variablePointersStorageBuffer)",
     [](F f) -> bool { return f.vulkan11.variablePointersStorageBuffer; }},
    {4442, "variable pointers (variablePointers)", [](F f) -> bool { return f.vulkan11.variablePointers; }},
    {4448, "8-bit storage buffers (storageBuffer8BitAccess)",
     [](F f) -> bool { return f.vulkan12.storageBuffer8BitAccess; }},
    {4449, "8-bit uniform buffers (uniformAndStorageBuffer8BitAccess)",
     [](F f) -> bool { return f.vulkan12.uniformAndStorageBuffer8BitAccess; }},
    {4450, "8-bit push constants (storagePushConstant8)",
     [](F f) -> bool { return f.vulkan12.storagePushConstant8; }},
    {5345, "the Vulkan memory model (vulkanMemoryModel)",
     [](F f) -> bool { return f.vulkan12.vulkanMemoryModel; }},
    {5346, "device scope in the Vulkan memory model (vulkanMemoryModelDeviceScope)",
     [](F f) -> bool { return f.vulkan12.vulkanMemoryModelDeviceScope; }},
    {5347, "buffer device addresses (bufferDeviceAddress)", [](F f) -> bool { return f.buffer_addresses(); }},
    {5116, "bfloat16 (shaderBFloat16Type)", nullptr},
    {5117, "bfloat16 dot products (shaderBFloat16DotProduct)", nullptr},
    {5118, "bfloat16 cooperative matrices (shaderBFloat16CooperativeMatrix)", nullptr},
    {5357, "NVIDIA's cooperative matrices (VK_NV_cooperative_matrix)", nullptr},
    {6016, "integer dot products (shaderIntegerDotProduct)",
     [](F f) -> bool { return f.integer_dot_product.shaderIntegerDotProduct; }},
    {6017, "integer dot products (shaderIntegerDotProduct)",
     [](F f) -> bool { return f.integer_dot_product.shaderIntegerDotProduct; }},
    {6018, "integer dot products (shaderIntegerDotProduct)",
     [](F f) -> bool { return f.integer_dot_product.shaderIntegerDotProduct; }},
    {6019, "integer dot products (shaderIntegerDotProduct)",
     [](F f) -> bool { return f.integer_dot_product.shaderIntegerDotProduct; }},
    {6022, "cooperative matrices (VK_KHR_cooperative_matrix)",
     [](F f) -> bool { return f.cooperative_matrices(); }},
};

}  // namespace

std::optional<int64_t> Features::query(std::string_view category, std::string_view key) const {
  for (const Query& entry : kQueries)
    if (category == entry.category && key == entry.key) return entry.answer(*this);
  return std::nullopt;
}

CapabilityAnswer Features::capability(uint32_t number) const {
  const auto* const found = std::ranges::find(kCapabilities, number, &Capability::number);
  if (found == std::end(kCapabilities)) return {};
  if (!found->has) return {CapabilityState::unused, found->feature};
  return {found->has(*this) ? CapabilityState::present : CapabilityState::missing, found->feature};
}

}  // namespace halyard::vulkan
