// The cost of a dispatch through the Vulkan driver, compared with a minimal hand-written Vulkan program: the
// same kernel, device and amount of work, alternating in one run. Two rows: commands recorded once and
// executed repeatedly, and commands recorded for each execution. The driver is used through halyard/driver.h,
// like the host does.
#include <dlfcn.h>
#include <fmt/core.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "halyard/driver.h"

namespace {

constexpr uint32_t kWords = 16;
constexpr int kTurns = 300;  // of each variant
constexpr int kInTurn = 20;  // executions

[[noreturn]] void stop(const std::string& why) {
  fmt::print(stderr, "vulkan_dispatch: {}\n", why);
  std::exit(1);
}

void must(VkResult result, const char* what) {
  if (result != VK_SUCCESS) stop(fmt::format("{} returned {}", what, static_cast<int>(result)));
}

std::vector<uint32_t> read_kernel() {
  std::ifstream file(HALYARD_BUILD_DIR "/tests/vulkan/increment.spv", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.empty())
    stop("the kernel is not built; expected " HALYARD_BUILD_DIR "/tests/vulkan/increment.spv");
  std::vector<uint32_t> words(bytes.size() / 4);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(words.data()));
  return words;
}

// ---- By hand. Nothing is freed: the program ends.

class ByHand {
 public:
  ByHand() {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                                .pApplicationInfo = &application};
    VkInstance instance = VK_NULL_HANDLE;
    must(vkCreateInstance(&instance_info, nullptr, &instance), "vkCreateInstance");
    uint32_t count = 1;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    vkEnumeratePhysicalDevices(instance, &count, &physical);
    if (count == 0) stop("no Vulkan device");
    vkGetPhysicalDeviceProperties(physical, &properties);
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
    uint32_t family = 0;
    while (family < count && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                                .queueFamilyIndex = family,
                                                .queueCount = 1,
                                                .pQueuePriorities = &priority};
    const VkPhysicalDeviceVulkan12Features features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .timelineSemaphore = VK_TRUE};
    const VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                            .pNext = &features,
                                            .queueCreateInfoCount = 1,
                                            .pQueueCreateInfos = &queue_info};
    must(vkCreateDevice(physical, &device_info, nullptr, &device_), "vkCreateDevice");
    vkGetDeviceQueue(device_, family, 0, &queue_);
    make_buffer(physical);
    make_pipeline();
    const VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                               .queueFamilyIndex = family};
    for (auto [pool, commands] : {std::pair{&kept_pool_, &kept_}, std::pair{&once_pool_, &once_}}) {
      must(vkCreateCommandPool(device_, &pool_info, nullptr, pool), "vkCreateCommandPool");
      const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                .commandPool = *pool,
                                                .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                .commandBufferCount = 1};
      must(vkAllocateCommandBuffers(device_, &info, commands), "vkAllocateCommandBuffers");
    }
    kept_set_ = allocate_set(kept_descriptors_);
    record(kept_, kept_set_, 0);
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo semaphore_info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                                  .pNext = &type};
    must(vkCreateSemaphore(device_, &semaphore_info, nullptr, &timeline_), "vkCreateSemaphore");
  }

  void again() { submit(kept_); }
  void once() {
    must(vkResetCommandPool(device_, once_pool_, 0), "vkResetCommandPool");
    must(vkResetDescriptorPool(device_, once_descriptors_, 0), "vkResetDescriptorPool");
    record(once_, allocate_set(once_descriptors_), VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    submit(once_);
  }
  uint32_t first_word() const { return *words_; }

  VkPhysicalDeviceProperties properties = {};

 private:
  void make_buffer(VkPhysicalDevice physical) {
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = kWords * 4,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    must(vkCreateBuffer(device_, &info, nullptr, &buffer_), "vkCreateBuffer");
    VkMemoryRequirements needs = {};
    vkGetBufferMemoryRequirements(device_, buffer_, &needs);
    VkPhysicalDeviceMemoryProperties memory = {};
    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    constexpr VkMemoryPropertyFlags kWanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t kind = 0;
    while (!(needs.memoryTypeBits >> kind & 1) ||
           (memory.memoryTypes[kind].propertyFlags & kWanted) != kWanted)
      ++kind;
    const VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                             .allocationSize = needs.size,
                                             .memoryTypeIndex = kind};
    VkDeviceMemory bytes = VK_NULL_HANDLE;
    must(vkAllocateMemory(device_, &allocation, nullptr, &bytes), "vkAllocateMemory");
    must(vkBindBufferMemory(device_, buffer_, bytes, 0), "vkBindBufferMemory");
    void* mapped = nullptr;
    must(vkMapMemory(device_, bytes, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
    words_ = static_cast<uint32_t*>(mapped);
    std::fill_n(words_, kWords, 0);
  }

  void make_pipeline() {
    const std::vector<uint32_t> words = read_kernel();
    const VkShaderModuleCreateInfo module_info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                                  .codeSize = words.size() * 4,
                                                  .pCode = words.data()};
    VkShaderModule module = VK_NULL_HANDLE;
    must(vkCreateShaderModule(device_, &module_info, nullptr, &module), "vkCreateShaderModule");
    const VkDescriptorSetLayoutBinding binding = {.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                  .descriptorCount = 1,
                                                  .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &binding};
    must(vkCreateDescriptorSetLayout(device_, &set_info, nullptr, &set_), "vkCreateDescriptorSetLayout");
    const VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &set_};
    must(vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout_), "vkCreatePipelineLayout");
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "increment"},
        .layout = layout_};
    must(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_),
         "vkCreateComputePipelines");
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = 1,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    for (VkDescriptorPool* made : {&kept_descriptors_, &once_descriptors_})
      must(vkCreateDescriptorPool(device_, &pool, nullptr, made), "vkCreateDescriptorPool");
  }

  VkDescriptorSet allocate_set(VkDescriptorPool pool) {
    const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &set_};
    VkDescriptorSet set = VK_NULL_HANDLE;
    must(vkAllocateDescriptorSets(device_, &info, &set), "vkAllocateDescriptorSets");
    const VkDescriptorBufferInfo buffer = {.buffer = buffer_, .range = VK_WHOLE_SIZE};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = set,
                                        .descriptorCount = 1,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = &buffer};
    vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
    return set;
  }

  void record(VkCommandBuffer commands, VkDescriptorSet set, VkCommandBufferUsageFlags flags) {
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = flags};
    must(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set, 0, nullptr);
    vkCmdDispatch(commands, kWords, 1, 1);
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &barrier, 0, nullptr, 0, nullptr);
    must(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  }

  void submit(VkCommandBuffer commands) {
    const uint64_t value = ++value_;
    const VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                    .signalSemaphoreValueCount = 1,
                                                    .pSignalSemaphoreValues = &value};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &timeline_};
    must(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
    const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &timeline_,
                                      .pValues = &value};
    must(vkWaitSemaphores(device_, &wait, UINT64_MAX), "vkWaitSemaphores");
  }

  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  uint32_t* words_ = nullptr;
  VkDescriptorSetLayout set_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkDescriptorPool kept_descriptors_ = VK_NULL_HANDLE, once_descriptors_ = VK_NULL_HANDLE;
  VkCommandPool kept_pool_ = VK_NULL_HANDLE, once_pool_ = VK_NULL_HANDLE;
  VkCommandBuffer kept_ = VK_NULL_HANDLE, once_ = VK_NULL_HANDLE;
  VkDescriptorSet kept_set_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  uint64_t value_ = 0;
};

// ---- Through the driver

class ThroughDriver {
 public:
  ThroughDriver() {
    void* library =
        dlopen(HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-vulkan.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) stop(dlerror());
    const auto negotiate =
        reinterpret_cast<halyard_driver_negotiate_fn>(dlsym(library, HALYARD_DRIVER_NEGOTIATE_SYMBOL));
    const halyard_driver_request_t request = {.struct_size = sizeof request,
                                              .abi_min = HALYARD_DRIVER_ABI_V1,
                                              .abi_max = HALYARD_DRIVER_ABI_V1,
                                              .host_version = "benchmark"};
    halyard_driver_reply_t reply = {.struct_size = sizeof reply};
    if (!negotiate(&request, &reply)) stop(reply.refusal);
    table_ = reply.table;
    services_.struct_size = sizeof services_;
    services_.status_create = [](void*, halyard_status_code_t code, const char* message,
                                 size_t size) -> halyard_status_t {
      stop(fmt::format("the driver fails with {}: {}", code, std::string_view(message, size)));
    };
    services_.log = [](void*, int32_t, const char*, size_t) {};
    const halyard_driver_init_args_t init = {
        .struct_size = sizeof init, .abi_version = HALYARD_DRIVER_ABI_V1, .services = &services_};
    table_->initialize(&init, &instance_);
    const halyard_device_open_args_t open = {.struct_size = sizeof open, .kind = {"vulkan", 6}};
    table_->device_open(instance_, &open, &device_);

    const halyard_memory_request_t memory = {
        .struct_size = sizeof memory,
        .memory_type = HALYARD_MEMORY_HOST_LOCAL | uint32_t{HALYARD_MEMORY_DEVICE_VISIBLE},
        .usage = HALYARD_USAGE_DEFAULT,
        .affinity = 1,
        .size = kWords * 4};
    halyard_memory_info_t info = {.struct_size = sizeof info};
    table_->memory_allocate(device_, &memory, &memory_, &info);
    table_->memory_map(device_, memory_, HALYARD_MAP_READ | HALYARD_MAP_WRITE, 0, kWords * 4, &words_);
    std::fill_n(static_cast<uint32_t*>(words_), kWords, 0);
    std::ifstream file(HALYARD_BUILD_DIR "/tests/vulkan/device_code.bin", std::ios::binary);
    data_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    const halyard_executable_args_t executable = {.struct_size = sizeof executable,
                                                  .format = {"vulkan-spirv-fb", 15},
                                                  .data = data_.data(),
                                                  .data_size = data_.size(),
                                                  .affinity = 1};
    table_->executable_create(device_, &executable, &executable_);
    range_ = {.memory = memory_, .length = kWords * 4};
    dispatch_.header = {sizeof dispatch_, HALYARD_COMMAND_DISPATCH};
    dispatch_.executable = executable_;
    dispatch_.function = 2;  // increment
    dispatch_.workgroups[0] = kWords;
    dispatch_.workgroups[1] = dispatch_.workgroups[2] = 1;
    dispatch_.binding_count = 1;
    dispatch_.bindings = &range_;
    kept_ = make_list(false);
    table_->semaphore_create(device_, 0, &semaphore_);
  }

  void again() { submit(kept_); }
  void once() {
    halyard_driver_command_list_t list = make_list(true);
    submit(list);
    table_->command_list_destroy(device_, list);
  }
  uint32_t first_word() const { return *static_cast<uint32_t*>(words_); }

 private:
  halyard_driver_command_list_t make_list(bool one_shot) {
    const halyard_command_list_args_t args = {.struct_size = sizeof args,
                                              .one_shot = one_shot,
                                              .affinity = 1,
                                              .commands = &dispatch_.header,
                                              .commands_size = sizeof dispatch_,
                                              .command_count = 1};
    halyard_driver_command_list_t list = nullptr;
    table_->command_list_create(device_, &args, &list);
    return list;
  }

  void submit(halyard_driver_command_list_t list) {
    halyard_operation_t operation = {};
    operation.struct_size = sizeof operation;
    operation.kind = HALYARD_OPERATION_EXECUTE;
    operation.execute.list = list;
    const halyard_timepoint_t signal = {semaphore_, ++value_};
    const halyard_submission_t submission = {.struct_size = sizeof submission,
                                             .signal_count = 1,
                                             .affinity = 1,
                                             .signals = &signal,
                                             .operation = &operation,
                                             .completed = [](void*, halyard_status_t) {}};
    table_->queue_submit(device_, &submission);
    const halyard_semaphore_wait_args_t wait = {.struct_size = sizeof wait,
                                                .timepoint_count = 1,
                                                .timepoints = &signal,
                                                .deadline_ns = HALYARD_WAIT_FOREVER};
    table_->semaphore_wait(device_, &wait);
  }

  const halyard_driver_table_t* table_ = nullptr;
  halyard_host_services_t services_ = {};
  halyard_driver_instance_t instance_ = nullptr;
  halyard_driver_device_t device_ = nullptr;
  halyard_driver_memory_t memory_ = nullptr;
  void* words_ = nullptr;
  std::vector<char> data_;
  halyard_driver_executable_t executable_ = nullptr;
  halyard_range_t range_ = {};
  halyard_command_dispatch_t dispatch_ = {};
  halyard_driver_command_list_t kept_ = nullptr;
  halyard_driver_semaphore_t semaphore_ = nullptr;
  uint64_t value_ = 0;
};

// Microseconds of one execution.
double turn(const std::function<void()>& execute) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kInTurn; ++i) execute();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
         kInTurn;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void compare(const char* name, const std::function<void()>& by_hand, const std::function<void()>& driver) {
  std::vector<double> hands, drivers, ratios;
  turn(by_hand);
  turn(driver);
  for (int i = 0; i < kTurns; ++i) {
    // Alternates the order, because the second finds warmer caches.
    double hand = 0, ours = 0;
    if (i % 2 == 0) hand = turn(by_hand);
    ours = turn(driver);
    if (i % 2 != 0) hand = turn(by_hand);
    hands.push_back(hand);
    drivers.push_back(ours);
    ratios.push_back(ours / hand);
  }
  fmt::print("{:<30} {:>10.2f} {:>10.2f} {:>10.2f}\n", name, median(hands), median(drivers), median(ratios));
}

}  // namespace

int main() {
  ByHand by_hand;
  ThroughDriver driver;
  fmt::print("{}, medians of {} turns of {}\n", by_hand.properties.deviceName, kTurns, kInTurn);
  fmt::print("{:<30} {:>10} {:>10} {:>10}\n", "dispatch and wait, us", "by hand", "driver", "ratio");
  compare("recorded once, executed again", [&] { by_hand.again(); }, [&] { driver.again(); });
  compare("recorded for one execution", [&] { by_hand.once(); }, [&] { driver.once(); });
  if (by_hand.first_word() != driver.first_word() || driver.first_word() != 2 * (kTurns + 1) * kInTurn)
    stop("both did not do the same work");
}
