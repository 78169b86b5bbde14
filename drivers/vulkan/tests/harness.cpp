// Opens devices, replaces functions of Vulkan, and creates executables.
#include "harness.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace halyard::vulkan_tests {

std::vector<uint8_t> kernel_file(const std::string& name) {
  std::ifstream file(std::string(HALYARD_BUILD_DIR) + "/tests/vulkan/" + name, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

void VulkanTest::SetUp() {
  const Outcome outcome = initialize();
  if (outcome.code() == Code::UNAVAILABLE) GTEST_SKIP() << outcome.message();
  ASSERT_OK(outcome);
  EXPECT_OK(try_open("", {{"cache", ""}}, &device_));
  ASSERT_NE(device_, nullptr);
}

void VulkanTest::TearDown() {
  close_device();
  shutdown();
}

void VulkanTest::reopen(const Options& options) {
  close_device();
  ASSERT_OK(try_open("", options, &device_));
}

Outcome VulkanTest::try_open(std::string_view path, const Options& options, halyard_driver_device_t* device) {
  return DriverTest::try_open("vulkan", path, options, device);
}

vulkan::DeviceFunctions& VulkanTest::functions(const vulkan::Device& device) {
  return const_cast<vulkan::DeviceFunctions&>(device.vk());
}

vulkan::Features& VulkanTest::features() { return const_cast<vulkan::Features&>(device_->features()); }

namespace {
std::atomic<bool> stuck_waits_may_end = false;
}

void VulkanTest::accept_without_end() {
  stuck_waits_may_end = false;
  functions().QueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo*, VkFence) { return VK_SUCCESS; };
  functions().WaitSemaphores = [](VkDevice, const VkSemaphoreWaitInfo*, uint64_t) {
    while (!stuck_waits_may_end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return VK_ERROR_DEVICE_LOST;
  };
}

void VulkanTest::stuck_waits_end() { stuck_waits_may_end = true; }

void VulkanTest::replace_vulkan() {
  static uint64_t last = 0;
  last = 0;
  functions().QueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo* info, VkFence) {
    last = *static_cast<const VkTimelineSemaphoreSubmitInfo*>(info->pNext)->pSignalSemaphoreValues;
    return VK_SUCCESS;
  };
  functions().GetSemaphoreCounterValue = [](VkDevice, VkSemaphore, uint64_t* value) {
    *value = last;
    return VK_SUCCESS;
  };
}

Outcome VulkanTest::load(std::string_view format, const std::vector<uint8_t>& data, Executable* executable,
                         const std::vector<uint32_t>& constants,
                         const std::vector<uint32_t>& subgroup_sizes) {
  halyard_executable_args_t args = executable_args(format, data, constants);
  args.subgroup_sizes = subgroup_sizes.data();
  args.subgroup_size_count = static_cast<uint32_t>(subgroup_sizes.size());
  return create(args, executable);
}

VulkanTest::Executable VulkanTest::executable(std::string_view format, const std::vector<uint8_t>& data,
                                              const std::vector<uint32_t>& constants) {
  Executable result = nullptr;
  EXPECT_OK(load(format, data, &result, constants));
  return result;
}

halyard_command_dispatch_t VulkanTest::dispatch(Executable executable, uint32_t function,
                                                std::vector<halyard_range_t> bindings,
                                                std::vector<uint32_t> constants, uint32_t x) {
  bindings_.push_back(std::make_unique<std::vector<halyard_range_t>>(std::move(bindings)));
  constants_.push_back(std::make_unique<std::vector<uint32_t>>(std::move(constants)));
  halyard_command_dispatch_t command = {};
  command.header = {sizeof command, HALYARD_COMMAND_DISPATCH};
  command.executable = executable;
  command.function = function;
  command.workgroups[0] = x;
  command.workgroups[1] = command.workgroups[2] = 1;
  command.constant_count = static_cast<uint32_t>(constants_.back()->size());
  command.constants = constants_.back()->data();
  command.binding_count = static_cast<uint32_t>(bindings_.back()->size());
  command.bindings = bindings_.back()->data();
  return command;
}

Outcome VulkanTest::run_kernel(Executable executable, uint32_t function,
                               std::vector<halyard_range_t> bindings, std::vector<uint32_t> constants,
                               uint32_t x) {
  const auto command = dispatch(executable, function, std::move(bindings), std::move(constants), x);
  return run(execute_operation(finish(Recording().dispatch(command))));
}

}  // namespace halyard::vulkan_tests
