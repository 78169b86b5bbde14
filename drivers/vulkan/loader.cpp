// Opens libvulkan and queries its functions.
#include "loader.h"

#include <dlfcn.h>

namespace halyard::vulkan {

Result<Loader> Loader::open() {
  constexpr const char* kNames[] = {"libvulkan.so.1", "libvulkan.so"};
  void* library = nullptr;
  std::string reason;
  for (const char* candidate : kNames) {
    library = dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    if (const char* text = reason.empty() ? dlerror() : nullptr) reason = text;
  }
  if (!library)
    return fail(HALYARD_UNAVAILABLE,
                "cannot open the Vulkan loader ({}); install it (Debian: libvulkan1, with a driver such as "
                "mesa-vulkan-drivers)",
                reason);
  Loader loader;
  loader.GetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (!loader.GetInstanceProcAddr)
    return fail(HALYARD_UNAVAILABLE,
                "libvulkan has no function vkGetInstanceProcAddr; install another loader");
  const auto find = [&]<typename F>(const char* function, F& pointer) {
    pointer = reinterpret_cast<F>(loader.GetInstanceProcAddr(nullptr, function));
    return pointer != nullptr;
  };
  PFN_vkEnumerateInstanceVersion instance_version = nullptr;
  if (!find("vkCreateInstance", loader.CreateInstance) ||
      !find("vkEnumerateInstanceExtensionProperties", loader.EnumerateInstanceExtensionProperties) ||
      !find("vkEnumerateInstanceLayerProperties", loader.EnumerateInstanceLayerProperties) ||
      !find("vkEnumerateInstanceVersion", instance_version))
    return fail(HALYARD_UNAVAILABLE, "the Vulkan loader is older than 1.1; expected 1.2 or newer");
  HALYARD_KIT_TRY(check(instance_version(&loader.api_version), "vkEnumerateInstanceVersion"));
  if (loader.api_version < VK_API_VERSION_1_2)
    return fail(HALYARD_UNAVAILABLE, "the Vulkan loader has version {}; expected 1.2 or newer",
                version_text(loader.api_version));
  return loader;
}

Result<InstanceFunctions> instance_functions(const Loader& loader, VkInstance instance) {
  InstanceFunctions vk;
#define HALYARD_FIND_(name) \
  vk.name = reinterpret_cast<PFN_vk##name>(loader.GetInstanceProcAddr(instance, "vk" #name));
#define HALYARD_NEED_(name) \
  HALYARD_FIND_(name)       \
  if (!vk.name) return fail(HALYARD_INTERNAL, "the Vulkan loader has no function vk{}", #name);
  HALYARD_VULKAN_INSTANCE_FUNCTIONS(HALYARD_NEED_)
  HALYARD_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(HALYARD_FIND_)
#undef HALYARD_NEED_
#undef HALYARD_FIND_
  return vk;
}

Result<DeviceFunctions> device_functions(const InstanceFunctions& instance, VkDevice device) {
  DeviceFunctions vk;
#define HALYARD_FIND_(name) \
  vk.name = reinterpret_cast<PFN_vk##name>(instance.GetDeviceProcAddr(device, "vk" #name));
#define HALYARD_NEED_(name) \
  HALYARD_FIND_(name)       \
  if (!vk.name) return fail(HALYARD_INTERNAL, "the Vulkan device has no function vk{}", #name);
  HALYARD_VULKAN_DEVICE_FUNCTIONS(HALYARD_NEED_)
  HALYARD_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(HALYARD_FIND_)
#undef HALYARD_NEED_
#undef HALYARD_FIND_
  return vk;
}

namespace {

struct ResultName {
  VkResult result;
  const char* name;
};
#define HALYARD_NAME_(result) {result, #result}
constexpr ResultName kResultNames[] = {
    HALYARD_NAME_(VK_NOT_READY),
    HALYARD_NAME_(VK_TIMEOUT),
    HALYARD_NAME_(VK_INCOMPLETE),
    HALYARD_NAME_(VK_ERROR_OUT_OF_HOST_MEMORY),
    HALYARD_NAME_(VK_ERROR_OUT_OF_DEVICE_MEMORY),
    HALYARD_NAME_(VK_ERROR_INITIALIZATION_FAILED),
    HALYARD_NAME_(VK_ERROR_DEVICE_LOST),
    HALYARD_NAME_(VK_ERROR_MEMORY_MAP_FAILED),
    HALYARD_NAME_(VK_ERROR_LAYER_NOT_PRESENT),
    HALYARD_NAME_(VK_ERROR_EXTENSION_NOT_PRESENT),
    HALYARD_NAME_(VK_ERROR_FEATURE_NOT_PRESENT),
    HALYARD_NAME_(VK_ERROR_INCOMPATIBLE_DRIVER),
    HALYARD_NAME_(VK_ERROR_TOO_MANY_OBJECTS),
    HALYARD_NAME_(VK_ERROR_FRAGMENTED_POOL),
    HALYARD_NAME_(VK_ERROR_UNKNOWN),
    HALYARD_NAME_(VK_ERROR_OUT_OF_POOL_MEMORY),
    HALYARD_NAME_(VK_ERROR_INVALID_EXTERNAL_HANDLE),
    HALYARD_NAME_(VK_ERROR_FRAGMENTATION),
    HALYARD_NAME_(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS),
    HALYARD_NAME_(VK_ERROR_INVALID_SHADER_NV),
};
#undef HALYARD_NAME_

halyard_status_code_t code_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_FRAGMENTATION:
      return HALYARD_RESOURCE_EXHAUSTED;
    case VK_ERROR_DEVICE_LOST:
      return HALYARD_ABORTED;
    case VK_ERROR_INVALID_EXTERNAL_HANDLE:
      return HALYARD_UNIMPLEMENTED;
    default:
      return HALYARD_INTERNAL;
  }
}

}  // namespace

std::string name(VkResult result) {
  for (const ResultName& entry : kResultNames)
    if (entry.result == result) return entry.name;
  return fmt::format("VkResult {}", static_cast<int>(result));
}

Result<> check(VkResult result, std::string_view call) {
  if (result == VK_SUCCESS) return {};
  return fail(code_of(result), "{} returned {}", call, name(result));
}

std::string version_text(uint32_t version) {
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                     VK_API_VERSION_PATCH(version));
}

}  // namespace halyard::vulkan
