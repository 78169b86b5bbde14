// Opens a device and closes it.
#include <algorithm>

#include "command_encoder.h"
#include "device.h"
#include "work.h"

namespace halyard::vulkan {

namespace {

constexpr uint32_t kDefaultQueues = 4;  // compute queues, or as many as the device has

// The compute queues of the family with the fewest other capabilities. Then one transfer-only queue if such a
// family exists, because it can copy while kernels run.
std::vector<Queue::Traits> choose_queues(const std::vector<VkQueueFamilyProperties>& families,
                                         uint32_t wanted) {
  constexpr VkQueueFlags kGraphics = VK_QUEUE_GRAPHICS_BIT;
  const auto find = [&](VkQueueFlags with, VkQueueFlags without) {
    return static_cast<uint32_t>(std::ranges::find_if(families,
                                                      [&](const VkQueueFamilyProperties& family) {
                                                        return (family.queueFlags & with) == with &&
                                                               !(family.queueFlags & without) &&
                                                               family.queueCount > 0;
                                                      }) -
                                 families.begin());
  };
  uint32_t family = find(VK_QUEUE_COMPUTE_BIT, kGraphics);
  if (family == families.size()) family = find(VK_QUEUE_COMPUTE_BIT, 0);
  std::vector<Queue::Traits> queues;
  const uint32_t count = std::min(families[family].queueCount, wanted != 0 ? wanted : kDefaultQueues);
  for (uint32_t i = 0; i < count; ++i)
    queues.push_back({.family = family, .index = i, .computes = true, .position = i});
  const uint32_t transfer = find(VK_QUEUE_TRANSFER_BIT, VK_QUEUE_COMPUTE_BIT | kGraphics);
  if (transfer != families.size() && queues.size() < kMaxQueues)
    queues.push_back({.family = transfer, .index = 0, .computes = false, .position = count});
  return queues;
}

}  // namespace

Device::Device(Instance& instance, const DeviceOptions& options) : instance_(instance), options_(options) {}

Result<> Device::start() {
  vulkan_ = instance_.vulkan.get();
  if (options_.validate) {
    validated_ = HALYARD_KIT_TRY(VulkanInstance::create(services(), true));
    vulkan_ = validated_.get();
  }
  physical_ = *HALYARD_KIT_TRY(vulkan_->find(options_.path));
  features_ = HALYARD_KIT_TRY(Features::of(
      *vulkan_, physical_, {.traced = instance_.trace_span != nullptr, .robust = options_.robust}));
  HALYARD_KIT_TRY(create_device(physical_, *vulkan_));
  VkPhysicalDeviceMemoryProperties memory = {};
  vulkan_->vk().GetPhysicalDeviceMemoryProperties(physical_.handle, &memory);
  MemoryKinds kinds(memory);
  if (options_.separate_memory) kinds.separate();
  heap_.emplace(vk_, device_, features_, kinds, [this](const Block& block) { return clear(block); });
  HALYARD_KIT_TRY(heap_->start());
  nothing_ = HALYARD_KIT_TRY(heap_->allocate(HALYARD_KIT_TRY(heap_->kind_for(HALYARD_MEMORY_DEVICE_LOCAL)), 0,
                                             HALYARD_OWNER_WRITES_ALL));
  pipeline_cache_.emplace(services(), vk_, device_, options_.cache, physical_.properties);
  HALYARD_KIT_TRY(pipeline_cache_->start());
  uses_push_descriptors_ =
      options_.push_descriptors && features_.push_descriptors && vk_.CmdPushDescriptorSetKHR;
  for (Queue& queue : queues_) HALYARD_KIT_TRY(queue.start());
  return no_messages();
}

Result<> Device::create_device(const PhysicalDevice& physical, const VulkanInstance& vulkan) {
  const InstanceFunctions& vk = vulkan.vk();
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(physical.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(physical.handle, &count, families.data());
  std::vector<Queue::Traits> chosen = choose_queues(families, options_.queues);

  const std::vector<float> priorities(kMaxQueues, 1.0f);
  std::vector<VkDeviceQueueCreateInfo> queues;
  for (const Queue::Traits& queue : chosen) {
    if (queues.empty() || queues.back().queueFamilyIndex != queue.family)
      queues.push_back({.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                        .queueFamilyIndex = queue.family,
                        .pQueuePriorities = priorities.data()});
    ++queues.back().queueCount;
  }
  const VkPhysicalDeviceFeatures2 features = features_.chain();
  const VkDeviceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = &features,
      .queueCreateInfoCount = static_cast<uint32_t>(queues.size()),
      .pQueueCreateInfos = queues.data(),
      .enabledExtensionCount = static_cast<uint32_t>(features_.extensions.size()),
      .ppEnabledExtensionNames = features_.extensions.data()};
  HALYARD_KIT_TRY(check(vk.CreateDevice(physical.handle, &info, nullptr, &device_), "vkCreateDevice"));
  vk_ = HALYARD_KIT_TRY(device_functions(vk, device_));
  features_.calibrated_timestamps &= vk_.GetCalibratedTimestampsEXT != nullptr;
  for (Queue::Traits& traits : chosen) {
    if (instance_.trace_span && features_.vulkan12.hostQueryReset)
      traits.timestamp_bits = families[traits.family].timestampValidBits;
    queues_.emplace_back(*this, traits);
  }
  encoders_ = std::vector<kit::Pool<CommandEncoder>>(families.size());
  return {};
}

Device::~Device() {
  if (!device_ || !vk_.DestroyDevice) return;
  // All work has completed, but an implementation may still use the semaphores that the work has signalled.
  vk_.DeviceWaitIdle(device_);
  queues_.clear();  // also ends their threads, which may still post calls
  calls_.stop();
  encoders_.clear();
  pipeline_cache_.reset();
  if (nothing_) heap_->free(nothing_);
  heap_.reset();
  vk_.DestroyDevice(device_, nullptr);
}

void Device::trim() {
  for (kit::Pool<CommandEncoder>& pool : encoders_) pool.trim();
  heap_->trim();
  instance_.works.trim();
}

}  // namespace halyard::vulkan
