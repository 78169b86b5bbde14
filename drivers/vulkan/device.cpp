// Opens devices, and reports their properties.
#include "device.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <system_error>

#include "command_list.h"
#include "executable.h"
#include "executable_format.h"
#include "halyard/driver/host_memory.hpp"
#include "halyard/driver/options.hpp"
#include "recorder.h"
#include "work.h"

namespace halyard::vulkan {

namespace {

constexpr uint32_t kMostQueues = 64;    // the number of bits of an affinity
constexpr uint32_t kDefaultQueues = 4;  // compute queues, if the device has that many
constexpr uint32_t kMostCompileThreads = 64;

// ---- Queues

// The compute queues of the family with the fewest other capabilities, then one transfer-only queue, if there
// is such a family, because it can copy while kernels run.
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
  if (view(args.kind) != "vulkan")
    return fail(HALYARD_NOT_FOUND, "no device of kind '{}'; this driver has 'vulkan'", view(args.kind));
  DeviceOptions options;
  options.path = view(args.path);
  kit::Options given(args);
  options.validate = HALYARD_TRY(given.flag("validate", options.validate));
  options.queues = static_cast<uint32_t>(HALYARD_TRY(given.number("queues", 0, 1, kMostQueues - 1)));
  if (const auto folder = given.text("cache")) options.cache = std::string(*folder);
  options.compile_threads =
      static_cast<uint32_t>(HALYARD_TRY(given.number("compile_threads", 1, 1, kMostCompileThreads)));
  options.inline_completion = HALYARD_TRY(given.flag("inline_completion", options.inline_completion));
  options.push_descriptors = HALYARD_TRY(given.flag("push_descriptors", options.push_descriptors));
  options.robust = HALYARD_TRY(given.flag("robust", options.robust));
  constexpr std::pair<std::string_view, SpirvPolicy> kPolicies[] = {
      {"strict", SpirvPolicy::strict}, {"tolerant", SpirvPolicy::tolerant}, {"off", SpirvPolicy::off}};
  if (const auto text = given.text("spirv")) {
    const auto* const policy =
        std::ranges::find(kPolicies, *text, &std::pair<std::string_view, SpirvPolicy>::first);
    if (policy == std::end(kPolicies)) return given.refusal("spirv", *text, "'strict', 'tolerant' or 'off'");
    options.spirv = policy->second;
  }
  HALYARD_TRY(given.finish());
  return options;
}

Instance::Instance(const Services& host) : trace_span(kit::trace_function(host)), host_(host) {}
Instance::~Instance() = default;

std::vector<halyard_device_info_t> Instance::devices() const {
  std::vector<halyard_device_info_t> infos;
  for (const PhysicalDevice& device : vulkan->devices()) {
    halyard_device_info_t& info = infos.emplace_back();
    info.kind = "vulkan";
    info.path = device.path.c_str();
    info.name = device.properties.deviceName;
  }
  return infos;
}

Result<std::unique_ptr<halyard_driver_device>> Instance::open(const halyard_device_open_args_t& args) {
  return Device::open(*this, HALYARD_TRY(DeviceOptions::parse(args)));
}

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
  nothing_ = HALYARD_TRY(heap_->allocate(HALYARD_TRY(heap_->kind_for(HALYARD_MEMORY_DEVICE_LOCAL)), 0,
                                         HALYARD_OWNER_WRITES_ALL));
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
  recorders_ = std::vector<kit::Pool<Recorder>>(families.size());
  return {};
}

Device::~Device() {
  if (!device_ || !vk_.DestroyDevice) return;
  // All work has completed, but an implementation may still use the semaphores that it has signalled.
  vk_.DeviceWaitIdle(device_);
  queues_.clear();  // and their threads, which may still post calls
  calls_.stop();
  recorders_.clear();
  pipeline_cache_.reset();
  if (nothing_) heap_->free(nothing_);
  heap_.reset();
  vk_.DestroyDevice(device_, nullptr);
}

halyard_device_properties_t Device::properties() const {
  halyard_device_properties_t properties = {};
  properties.capabilities = HALYARD_DEVICE_QUEUE_ALLOCA;
  if (heap_->unified()) properties.capabilities |= HALYARD_DEVICE_UNIFIED_MEMORY;
  if (heap_->all_coherent()) properties.capabilities |= HALYARD_DEVICE_HOST_COHERENT;
  properties.queue_count = static_cast<uint32_t>(queues_.size());
  properties.operations = kOperationBits;
  properties.memory_alignment = heap_->alignment();
  properties.maximum_allocation = heap_->maximum();
  // This is not the page size that Vulkan requires: see Heap::import.
  properties.import_alignment = features_.import_host_memory ? heap_->binding_alignment() : 0;
  if (!features_.semaphore_descriptors) return properties;
  properties.capabilities |= HALYARD_DEVICE_SEMAPHORE_EXPORT;
  properties.semaphore_fd_kind = HALYARD_SEMAPHORE_FD_OPAQUE;
  std::memcpy(properties.semaphore_fd_group, features_.ids.deviceUUID, VK_UUID_SIZE);
  std::memcpy(properties.semaphore_fd_group + VK_UUID_SIZE, features_.ids.driverUUID, VK_UUID_SIZE);
  return properties;
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

Status Device::lost() const {
  if (!is_lost_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(lost_mutex_);
  return lost_;
}

void Device::lose(const Failure& reason, const Work* trigger, TaskList& ready) {
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
      lost_ = Status(services(), HALYARD_ABORTED, report);
      is_lost_.store(true, std::memory_order_release);
    }
  }
  const Status failure = lost();
  for (Queue& queue : queues_) queue.fail_all(failure, ready);
}

void Device::trim() {
  for (kit::Pool<Recorder>& pool : recorders_) pool.trim();
  heap_->trim();
  instance_.works.trim();
}

Result<std::unique_ptr<halyard_driver_memory>> Device::allocate(const halyard_memory_request_t& request,
                                                                bool later, halyard_memory_info_t& info) {
  auto memory = HALYARD_TRY(Memory::create(*heap_, tally_, request));
  if (!later) HALYARD_TRY(memory->commit());
  memory->describe(info);
  return memory;
}

Result<std::unique_ptr<halyard_driver_memory>> Device::import_memory(
    const halyard_memory_request_t& request, const halyard_external_memory_t& external,
    halyard_memory_info_t& info) {
  if (external.kind == HALYARD_EXTERNAL_OPAQUE_FD) {
    auto memory = HALYARD_TRY(Memory::import_fd(*heap_, tally_, request, external));
    memory->describe(info);
    return memory;
  }
  if (!features_.import_host_memory)
    return fail(HALYARD_UNIMPLEMENTED, "cannot import external memory of kind {}; this device imports none",
                external.kind);
  uint8_t* const bytes = HALYARD_TRY(kit::host_bytes(request, external, heap_->binding_alignment()));
  const bool writable = external.access & HALYARD_MAP_WRITE;
  auto memory = HALYARD_TRY(Memory::import(*heap_, tally_, request, bytes, writable));
  memory->describe(info);
  return memory;
}

Result<std::unique_ptr<halyard_driver_semaphore>> Device::create_semaphore(uint64_t initial) {
  return std::make_unique<halyard_driver_semaphore>(*this, services(), initial);
}

Result<std::unique_ptr<halyard_driver_semaphore>> Device::import_semaphore(int32_t fd) {
  auto semaphore = std::make_unique<halyard_driver_semaphore>(
      services(), HALYARD_TRY(SharedSemaphore::create_empty(*this)));
  HALYARD_TRY(semaphore->take(fd));  // last, because it cannot be undone
  return semaphore;
}

uint32_t Device::grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const {
  return grade_executable(*this, format, data, reason);
}

Result<std::unique_ptr<halyard_driver_executable>> Device::load(const halyard_executable_args_t& args) {
  return Executable::create(*this, args);
}

Result<std::unique_ptr<halyard_driver_command_list>> Device::create_list(
    const halyard_command_list_args_t& args) {
  return CommandList::create(*this, args);
}

Result<> Device::submit(const halyard_submission_t& submission, TaskList& ready) {
  HALYARD_TRY(vulkan::submit(*this, submission, ready));
  run_ready(ready);
  return {};
}

void Device::run_ready(TaskList& ready) {
  ready.run_work();
  for (Task* call = ready.pop_call(); call; call = ready.pop_call()) {
    const std::lock_guard lock(calls_mutex_);
    try {
      if (!calls_run_) {
        calls_.start([](Task& posted) {
          TaskList made_ready;
          posted.run(posted, made_ready);
        });
        calls_run_ = true;
      }
      calls_.post(*call);
    } catch (const std::system_error&) {  // no thread: calls run on this thread when it destroys the list
      ready.push_call(*call);
      return;
    }
  }
}

}  // namespace halyard::vulkan
