// The fixture of the tests of this driver: an open device, kernels that the build has compiled, and replaced
// functions of Vulkan.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device.h"
#include "driver_test.h"

namespace halyard::vulkan_tests {

using namespace driver_tests;  // outcomes, operations, ranges and slots by their short names

// A file that the build creates from the shaders of these tests.
std::vector<uint8_t> kernel_file(const std::string& name);

// An open device. The test is skipped if there is no Vulkan device. The pipeline cache is off unless a test
// sets its folder.
class VulkanTest : public DriverTest, public testing::Test {
 public:
  VulkanTest()
      : DriverTest(HALYARD_MEMORY_DEVICE_LOCAL | HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_OPTIMAL) {}

  void SetUp() override;
  void TearDown() override;
  void reopen(const Options& options);
  Outcome try_open(std::string_view path, const Options& options, halyard_driver_device_t* device);
  // Functions and features of the device, which a test may replace.
  vulkan::DeviceFunctions& functions() { return functions(*device_); }
  static vulkan::DeviceFunctions& functions(const vulkan::Device& device);
  vulkan::Features& features();
  // Submissions complete at once without doing anything.
  void replace_vulkan();
  // Submissions are accepted and never complete. The queue's thread may wait for them already when the device
  // is lost, so waits end when stuck_waits_end() was called.
  void accept_without_end();
  static void stuck_waits_end();

  std::vector<uint32_t> words(Memory memory, size_t count) { return content<uint32_t>(memory, count); }

  // ---- Executables

  Outcome load(std::string_view format, const std::vector<uint8_t>& data, Executable* executable,
               const std::vector<uint32_t>& constants = {}, const std::vector<uint32_t>& subgroup_sizes = {});
  Executable executable(std::string_view format, const std::vector<uint8_t>& data,
                        const std::vector<uint32_t>& constants = {});
  // The functions iota, add, increment and spread.
  Executable device_code() { return executable("vulkan-spirv-fb", kernel_file("device_code.bin")); }
  // Bindings and constants live as long as the fixture.
  halyard_command_dispatch_t dispatch(Executable executable, uint32_t function,
                                      std::vector<halyard_range_t> bindings,
                                      std::vector<uint32_t> constants = {}, uint32_t x = 1);
  // Runs a list with only this dispatch.
  Outcome run_kernel(Executable executable, uint32_t function, std::vector<halyard_range_t> bindings,
                     std::vector<uint32_t> constants = {}, uint32_t x = 1);

 private:
  std::vector<std::unique_ptr<std::vector<halyard_range_t>>> bindings_;
  std::vector<std::unique_ptr<std::vector<uint32_t>>> constants_;
};

}  // namespace halyard::vulkan_tests
