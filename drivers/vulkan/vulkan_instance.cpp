// Creates an instance, and finds its devices.
#include "vulkan_instance.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>

namespace halyard::vulkan {

namespace {

constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";

// For lists that Vulkan returns in two calls. The list may grow between them.
template <typename T, typename Call>
Result<std::vector<T>> list_of(std::string_view what, Call call) {
  std::vector<T> list;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {
    uint32_t count = 0;
    HALYARD_KIT_TRY(check(call(&count, nullptr), what));
    list.resize(count);
    result = call(&count, list.data());
    list.resize(count);
  }
  HALYARD_KIT_TRY(check(result, what));
  return list;
}

bool has_extension(const std::vector<VkExtensionProperties>& list, std::string_view name) {
  return std::ranges::any_of(
      list, [&](const VkExtensionProperties& extension) { return name == extension.extensionName; });
}

// The reason why a device cannot be used; empty if it can.
std::string why_not(const InstanceFunctions& vk, VkPhysicalDevice device,
                    const VkPhysicalDeviceProperties& properties) {
  if (properties.apiVersion < VK_API_VERSION_1_2)
    return fmt::format("it has Vulkan {}, expected 1.2 or newer", version_text(properties.apiVersion));
  VkPhysicalDeviceVulkan12Features features = {.sType =
                                                   VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &features};
  vk.GetPhysicalDeviceFeatures2(device, &all);
  if (!features.timelineSemaphore) return "it has no timeline semaphores";
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  const bool computes = std::ranges::any_of(families, [](const VkQueueFamilyProperties& family) {
    return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) && family.queueCount > 0;
  });
  return computes ? "" : "it has no compute queue";
}

std::string uuid_text(const uint8_t (&uuid)[VK_UUID_SIZE]) {
  std::string text = "GPU-";
  for (const uint8_t byte : uuid) text += fmt::format("{:02x}", byte);
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// The digits of a UUID in any notation; empty: not a UUID.
std::string uuid_digits(std::string_view text) {
  std::string digits = lower(text);
  if (digits.starts_with("gpu-")) digits.erase(0, 4);
  std::erase(digits, '-');
  const bool is_uuid =
      digits.size() == 2 * VK_UUID_SIZE && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_uuid ? digits : "";
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_in_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

// Whether the text is one or more whole words of the name. Numbers alone are not enough, because they are
// ordinals.
bool has_words(std::string_view name, std::string_view text) {
  if (std::ranges::none_of(text, is_letter)) return false;
  for (size_t at = name.find(text); at != std::string_view::npos; at = name.find(text, at + 1)) {
    const size_t end = at + text.size();
    const bool begins = at == 0 || !is_in_word(name[at - 1]) || !is_in_word(name[at]);
    const bool ends = end == name.size() || !is_in_word(name[end]) || !is_in_word(name[end - 1]);
    if (begins && ends) return true;
  }
  return false;
}

// The loader unloads implementations and layers with the last instance. A leak checker would then report
// their memory without symbols, so under a sanitizer they stay loaded.
void keep_libraries_for_sanitizers() {
#if HALYARD_SANITIZER_KIND != 0
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void*) {
        if (library->dlpi_name[0] != 0) dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        return 0;
      },
      nullptr);
#endif
}

}  // namespace

Result<size_t> choose_device(std::string_view path, const std::vector<PhysicalDevice>& devices) {
  if (path.empty()) return size_t{0};
  // The ways to name a device, the most specific first. The first way that matches any device determines the
  // matching devices.
  const std::string digits = uuid_digits(path);
  const std::string wanted = lower(path);
  const auto is_meant = [&](size_t i, int way) {
    const std::string name = lower(devices[i].properties.deviceName);
    if (way == 0) return !digits.empty() && uuid_digits(devices[i].uuid) == digits;
    if (way == 1) return std::to_string(i) == path;
    if (way == 2) return name == wanted;
    return has_words(name, wanted);
  };
  size_t count = 0;
  for (int way = 0; way < 4 && count == 0; ++way) {
    size_t found = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
      if (!is_meant(i, way)) continue;
      found = i;
      ++count;
    }
    if (count == 1) return found;
  }
  std::string known;
  for (size_t i = 0; i < devices.size(); ++i)
    known += fmt::format("{}'{}' or '{}' ({})", i == 0 ? "" : ", ", i, devices[i].uuid,
                         devices[i].properties.deviceName);
  return fail(HALYARD_NOT_FOUND, "{} 'vulkan://{}'; there {} {}",
              count > 1 ? "more than one device is" : "no device", path, devices.size() == 1 ? "is" : "are",
              known);
}

Result<std::unique_ptr<VulkanInstance>> VulkanInstance::create(const Services& services, bool validate) {
  std::unique_ptr<VulkanInstance> instance(new VulkanInstance);
  instance->loader_ = HALYARD_KIT_TRY(Loader::open());
  HALYARD_KIT_TRY(instance->start(services, validate));
  HALYARD_KIT_TRY(instance->look_for_devices());
  return instance;
}

Result<> VulkanInstance::start(const Services& services, bool validate) {
  const char* const layer = validate ? kLayer : nullptr;
  const auto extensions_of = [&](const char* of) {
    return list_of<VkExtensionProperties>(
        "vkEnumerateInstanceExtensionProperties", [&](uint32_t* count, VkExtensionProperties* list) {
          return loader_.EnumerateInstanceExtensionProperties(of, count, list);
        });
  };
  std::vector<VkExtensionProperties> available = HALYARD_KIT_TRY(extensions_of(nullptr));
  if (validate) {
    const auto layers = HALYARD_KIT_TRY(list_of<VkLayerProperties>(
        "vkEnumerateInstanceLayerProperties", [&](uint32_t* count, VkLayerProperties* list) {
          return loader_.EnumerateInstanceLayerProperties(count, list);
        }));
    if (std::ranges::none_of(layers, [](const VkLayerProperties& entry) {
          return std::string_view(entry.layerName) == kLayer;
        }))
      return fail(HALYARD_UNAVAILABLE,
                  "option 'validate' needs the layer {}, which is not installed (Debian: "
                  "vulkan-validationlayers)",
                  kLayer);
    const auto of_layer = HALYARD_KIT_TRY(extensions_of(kLayer));
    available.insert(available.end(), of_layer.begin(), of_layer.end());
  }

  std::vector<const char*> extensions;
  has_debug_utils_ = has_extension(available, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  if (has_debug_utils_) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  VkInstanceCreateFlags flags = 0;
  if (has_extension(available, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  const bool has_features = has_extension(available, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
  if (validate && has_features) extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);

  api_version_ = std::min<uint32_t>(loader_.api_version, VK_API_VERSION_1_3);
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .pApplicationName = "halyard",
                                         .pEngineName = "halyard",
                                         .apiVersion = api_version_};
  constexpr VkValidationFeatureEnableEXT kChecks[] = {
      VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT,
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
  };
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                               .flags = flags,
                               .pApplicationInfo = &application,
                               .enabledLayerCount = validate ? 1u : 0u,
                               .ppEnabledLayerNames = &layer,
                               .enabledExtensionCount = static_cast<uint32_t>(extensions.size()),
                               .ppEnabledExtensionNames = extensions.data()};
  VkDebugUtilsMessengerCreateInfoEXT messenger = {};
  VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                      .pNext = &messenger,
                                      .enabledValidationFeatureCount = std::size(kChecks),
                                      .pEnabledValidationFeatures = kChecks};
  if (validate) {
    if (!has_debug_utils_ || !has_features)
      return fail(HALYARD_UNAVAILABLE, "the layer {} has no {} or {}; install a newer one", kLayer,
                  VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
    messages_ = std::make_unique<ValidationMessages>(services);
    messenger = messages_->messenger();
    info.pNext = &features;
  }
  if (Result<> made = check(loader_.CreateInstance(&info, nullptr, &instance_), "vkCreateInstance"); !made)
    return fail(HALYARD_UNAVAILABLE,
                "{}; no Vulkan driver is installed or it does not work (Debian: mesa-vulkan-drivers)",
                made.failure().message);
  keep_libraries_for_sanitizers();
  vk_ = HALYARD_KIT_TRY(instance_functions(loader_, instance_));
  if (validate)
    HALYARD_KIT_TRY(check(vk_.CreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_),
                          "vkCreateDebugUtilsMessengerEXT"));
  return {};
}

VulkanInstance::~VulkanInstance() {
  if (messenger_) vk_.DestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (instance_ && vk_.DestroyInstance) vk_.DestroyInstance(instance_, nullptr);
}

Result<> VulkanInstance::look_for_devices() {
  const auto handles =
      list_of<VkPhysicalDevice>("vkEnumeratePhysicalDevices", [&](uint32_t* count, VkPhysicalDevice* list) {
        return vk_.EnumeratePhysicalDevices(instance_, count, list);
      });
  if (!handles)
    return fail(HALYARD_UNAVAILABLE, "{}; no Vulkan device can be used", handles.failure().message);
  std::string refused;
  for (const VkPhysicalDevice handle : *handles) {
    PhysicalDevice device = {.handle = handle};
    vk_.GetPhysicalDeviceProperties(handle, &device.properties);
    if (const std::string reason = why_not(vk_, handle, device.properties); !reason.empty()) {
      refused += fmt::format("; '{}' cannot be used: {}", device.properties.deviceName, reason);
      continue;
    }
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              .pNext = &id};
    vk_.GetPhysicalDeviceProperties2(handle, &properties);
    device.uuid = uuid_text(id.deviceUUID);
    devices_.push_back(std::move(device));
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    const auto same = std::ranges::count_if(
        devices_, [&](const PhysicalDevice& other) { return other.uuid == devices_[i].uuid; });
    devices_[i].path = same == 1 ? devices_[i].uuid : std::to_string(i);
  }
  if (devices_.empty())
    return fail(HALYARD_UNAVAILABLE,
                "the Vulkan loader finds no device that can be used{}; install a driver for "
                "one (Debian: mesa-vulkan-drivers)",
                refused);
  return {};
}

Result<const PhysicalDevice*> VulkanInstance::find(std::string_view path) const {
  return &devices_[HALYARD_KIT_TRY(choose_device(path, devices_))];
}

}  // namespace halyard::vulkan
