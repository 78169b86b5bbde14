// Opening a device, and what it says about itself.
#include "device.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "executable_format.h"
#include "recorder.h"
#include "work.h"

namespace halyard::vulkan {

namespace {

constexpr uint32_t kMostQueues = 64;    // an affinity has as many bits
constexpr uint32_t kDefaultQueues = 4;  // compute queues, where the device has so many
constexpr uint32_t kMostCompileThreads = 64;

// ---- Options

Result<uint32_t> number_in(std::string_view key, std::string_view text, uint32_t least, uint32_t most) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return fail(Code::INVALID_ARGUMENT, "option '{}' of 'vulkan' is '{}'; expected a number from {} to {}",
                key, text, least, most);
  return value;
}

Result<SpirvPolicy> policy_of(std::string_view key, std::string_view text) {
  constexpr std::pair<std::string_view, SpirvPolicy> kPolicies[] = {
      {"strict", SpirvPolicy::strict}, {"tolerant", SpirvPolicy::tolerant}, {"off", SpirvPolicy::off}};
  for (const auto& [name, policy] : kPolicies)
    if (text == name) return policy;
  return fail(Code::INVALID_ARGUMENT,
              "option '{}' of 'vulkan' is '{}'; expected 'strict', 'tolerant' or 'off'", key, text);
}

struct Option {
  std::string_view key;
  Result<> (*set)(std::string_view key, std::string_view value, DeviceOptions& options);
};
constexpr Option kOptions[] = {
    {"validate",
     [](std::string_view key, std::string_view value, DeviceOptions& options) -> Result<> {
       options.validate = HALYARD_TRY(number_in(key, value, 0, 1)) != 0;
       return {};
     }},
    {"queues",
     [](std::string_view key, std::string_view value, DeviceOptions& options) -> Result<> {
       options.queues = HALYARD_TRY(number_in(key, value, 1, kMostQueues - 1));
       return {};
     }},
    {"cache",
     [](std::string_view, std::string_view value, DeviceOptions& options) -> Result<> {
       options.cache = std::string(value);
       return {};
     }},
    {"compile_threads",
     [](std::string_view key, std::string_view value, DeviceOptions& options) -> Result<> {
       options.compile_threads = HALYARD_TRY(number_in(key, value, 1, kMostCompileThreads));
       return {};
     }},
    {"inline_completion",
     [](std::string_view key, std::string_view value, DeviceOptions& options) -> Result<> {
       options.inline_completion = HALYARD_TRY(number_in(key, value, 0, 1)) != 0;
       return {};
     }},
    {"push_descriptors",
     [](std::string_view key, std::string_view value, DeviceOptions& options) -> Result<> {
       options.push_descriptors = HALYARD_TRY(number_in(key, value, 0, 1)) != 0;
       return {};
     }},
    {"robust",
     [](std::string_view key, std::string_view value, DeviceOptions& options) -> Result<> {
       options.robust = HALYARD_TRY(number_in(key, value, 0, 1)) != 0;
       return {};
     }},
    {"spirv",
     [](std::string_view key, std::string_view value, DeviceOptions& options) -> Result<> {
       options.spirv = HALYARD_TRY(policy_of(key, value));
       return {};
     }},
};

// ---- Queues

// Compute queues of the family that does the least besides; then one that only transfers, where there is such
// a family: copies go on there while kernels run.
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
  if (transfer != families.size() && queues.size() < kMostQueues)
    queues.push_back({.family = transfer, .index = 0, .computes = false, .position = count});
  return queues;
}

}  // namespace

Result<DeviceOptions> DeviceOptions::parse(const halyard_device_open_args_t& args) {
  HALYARD_TRY(check_extensions(args.extensions));
  if (view(args.kind) != "vulkan")
    return fail(Code::NOT_FOUND, "no device of kind '{}'; this driver has 'vulkan'", view(args.kind));
  DeviceOptions options;
  options.path = view(args.path);
  for (uint32_t i = 0; i < args.option_count; ++i) {
    const std::string_view key = view(args.options[i].key);
    const auto* option = std::ranges::find(kOptions, key, &Option::key);
    if (option == std::end(kOptions)) {
      std::string known;
      for (const Option& entry : kOptions)
        known += fmt::format("{}'{}'", known.empty() ? "" : ", ", entry.key);
      return fail(Code::INVALID_ARGUMENT, "unknown option '{}'; 'vulkan' devices have {}", key, known);
    }
    HALYARD_TRY(option->set(key, view(args.options[i].value), options));
  }
  return options;
}

Instance::Instance(const Services& host) : services(host), trace_span(trace_function(host)) {}
Instance::~Instance() = default;

Device::Device(Instance& instance, const DeviceOptions& options) : instance_(instance), options_(options) {}

Result<std::unique_ptr<halyard_driver_device>> Device::open(Instance& instance,
                                                            const DeviceOptions& options) {
  auto device = std::make_unique<halyard_driver_device>(instance, options);
  HALYARD_TRY(device->start());
  return device;
}

Result<> Device::start() {
  vulkan_ = instance_.vulkan.get();
  if (options_.validate) {
    validated_ = HALYARD_TRY(VulkanInstance::create(services(), true));
    vulkan_ = validated_.get();
  }
  physical_ = *HALYARD_TRY(vulkan_->find(options_.path));
  features_ = HALYARD_TRY(Features::of(
      *vulkan_, physical_, {.traced = instance_.trace_span != nullptr, .robust = options_.robust}));
  HALYARD_TRY(create_device(physical_, *vulkan_));
  VkPhysicalDeviceMemoryProperties memory = {};
  vulkan_->vk().GetPhysicalDeviceMemoryProperties(physical_.handle, &memory);
  heap_.emplace(vk_, device_, features_, memory);
  HALYARD_TRY(heap_->start());
  nothing_ = HALYARD_TRY(heap_->allocate(HALYARD_TRY(heap_->kind_for(HALYARD_MEMORY_DEVICE_LOCAL)), 0));
  pipeline_cache_.emplace(services(), vk_, device_, options_.cache, physical_.properties);
  HALYARD_TRY(pipeline_cache_->start());
  uses_push_descriptors_ =
      options_.push_descriptors && features_.push_descriptors && vk_.CmdPushDescriptorSetKHR;
  for (Queue& queue : queues_) HALYARD_TRY(queue.start());
  return no_messages();
}

Result<> Device::create_device(const PhysicalDevice& physical, const VulkanInstance& vulkan) {
  const InstanceFunctions& vk = vulkan.vk();
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(physical.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(physical.handle, &count, families.data());
  std::vector<Queue::Traits> chosen = choose_queues(families, options_.queues);

  const std::vector<float> priorities(kMostQueues, 1.0f);
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
  HALYARD_TRY(check(vk.CreateDevice(physical.handle, &info, nullptr, &device_), "vkCreateDevice"));
  vk_ = HALYARD_TRY(device_functions(vk, device_));
  features_.calibrated_timestamps &= vk_.GetCalibratedTimestampsEXT != nullptr;
  for (Queue::Traits& traits : chosen) {
    if (instance_.trace_span && features_.vulkan12.hostQueryReset)
      traits.timestamp_bits = families[traits.family].timestampValidBits;
    queues_.emplace_back(*this, traits);
  }
  recorders_ = std::vector<NodePool<Recorder>>(families.size());
  return {};
}

Device::~Device() {
  if (!device_ || !vk_.DestroyDevice) return;
  // All work is done, but an implementation may still have to do with the semaphores that said so.
  vk_.DeviceWaitIdle(device_);
  queues_.clear();  // and their threads
  recorders_.clear();
  pipeline_cache_.reset();
  if (nothing_) heap_->free(nothing_);
  heap_.reset();
  vk_.DestroyDevice(device_, nullptr);
}

void Device::describe(halyard_device_properties_t& properties) const {
  properties.capabilities = HALYARD_DEVICE_QUEUE_ALLOCA;
  if (heap_->unified()) properties.capabilities |= HALYARD_DEVICE_UNIFIED_MEMORY;
  if (heap_->all_coherent()) properties.capabilities |= HALYARD_DEVICE_HOST_COHERENT;
  properties.queue_count = static_cast<uint32_t>(queues_.size());
  properties.operations = kOperationBits;
  properties.memory_alignment = heap_->alignment();
  properties.maximum_allocation = heap_->maximum();
  // Not the page size that Vulkan wants: see Heap::import.
  properties.import_alignment = features_.import_host_memory ? heap_->binding_alignment() : 0;
  if (!features_.semaphore_descriptors) return;
  properties.capabilities |= HALYARD_DEVICE_SEMAPHORE_EXPORT;
  if (!HALYARD_HAS_FIELD(&properties, halyard_device_properties_t, semaphore_fd_group)) return;
  properties.semaphore_fd_kind = HALYARD_SEMAPHORE_FD_OPAQUE;
  std::memcpy(properties.semaphore_fd_group, features_.ids.deviceUUID, VK_UUID_SIZE);
  std::memcpy(properties.semaphore_fd_group + VK_UUID_SIZE, features_.ids.driverUUID, VK_UUID_SIZE);
}

std::optional<int64_t> Device::query(std::string_view category, std::string_view key) const {
  if (category == "hal.device" && key == "concurrency") return static_cast<int64_t>(queues_.size());
  return features_.query(category, key);
}

Result<> Device::no_messages() const {
  const ValidationMessages* messages = vulkan_->messages();
  return messages ? messages->none() : Result<>();
}

Queue& Device::queue_for(uint64_t affinity, bool computes) {
  for (Queue& queue : queues_)
    if ((affinity >> queue.traits().position & 1) && (queue.traits().computes || !computes)) return queue;
  return queues_.front();
}

HostStatus Device::lost() const {
  if (!is_lost_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(lost_mutex_);
  return lost_;
}

void Device::lose(const Error& reason, const Work* trigger, DueList& due) {
  {
    const std::lock_guard lock(lost_mutex_);
    if (!lost_) {
      std::string report = fmt::format("device 'vulkan://{}' ({}) is lost: {}; open it again", physical_.path,
                                       physical_.properties.deviceName, reason.message);
      std::vector<Queue::Line> last;
      for (Queue& queue : queues_) queue.report(last);
      if (trigger && trigger->id != 0) {
        Submission refused;
        vulkan::describe(*trigger, refused);
        last.push_back({refused.id, refused.text() + ", refused"});
      }
      std::ranges::sort(last, {}, &Queue::Line::id);
      for (const Queue::Line& line : last)
        report += fmt::format("{}{}", &line == last.data() ? "; last submissions: " : "; ", line.text);
      lost_ = HostStatus(services(), {Code::ABORTED, report});
      is_lost_.store(true, std::memory_order_release);
    }
  }
  const HostStatus failure = lost();
  for (Queue& queue : queues_) queue.fail_all(failure, due);
}

void Device::trim() {
  for (NodePool<Recorder>& pool : recorders_) pool.trim();
  heap_->trim();
}

}  // namespace halyard::vulkan
