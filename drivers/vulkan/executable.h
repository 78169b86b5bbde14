// Executable: the pipelines of a loaded executable, in the order of its functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device_features.h"
#include "executable_format.h"

namespace halyard::vulkan {

class Device;

constexpr uint32_t kMaxPushBytes = 1024;  // an upper limit for all devices

// The location of binding number i of the dispatch.
struct BindingPlace {
  uint32_t set = 0;
  uint32_t binding = 0;
  uint32_t element = 0;
  VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
};

struct Pipeline {
  std::string name;
  std::string source;  // where it is in the source; may be empty
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::string refusal;  // why there is no pipeline, because the device cannot run it
  VkPipelineLayout layout = VK_NULL_HANDLE;
  uint32_t push_size = 0;  // bytes
  std::array<uint32_t, 3> workgroup_size = {};

  std::vector<VkDescriptorSetLayout> sets;
  std::vector<BindingPlace> bindings;
  uint32_t descriptor_count = 0;  // of the largest set
  bool pushes_descriptors = false;

  bool by_address = false;
  AddressLayout addresses;
};

class Executable {
 public:
  // See executable_create in driver.h.
  static Result<std::unique_ptr<halyard_driver_executable>> create(Device& device,
                                                                   const halyard_executable_args_t& args);
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable();

  Device& device() const { return device_; }
  uint32_t function_count() const { return static_cast<uint32_t>(pipelines_.size()); }
  const Pipeline& pipeline(uint32_t function) const { return pipelines_[function]; }
  Result<halyard_function_info_t> function_info(uint32_t function) const;
  const Services& services() const;

  // For create().
  explicit Executable(Device& device) : device_(device) {}

 private:
  Result<> build(const ExecutableImage& image, const halyard_executable_args_t& args);
  Result<> make_layouts(const ExecutableImage& image);
  Result<> make_pipelines(const ExecutableImage& image, const halyard_executable_args_t& args);

  Device& device_;
  std::vector<VkShaderModule> modules_;  // during construction only
  std::vector<VkDescriptorSetLayout> sets_;
  std::vector<VkPipelineLayout> layouts_;
  std::vector<Pipeline> pipelines_;
};

// See executable_grade in driver.h.
uint32_t grade_executable(const Device& device, std::string_view format, std::span<const uint8_t> data,
                          std::string& reason);

}  // namespace halyard::vulkan

struct halyard_driver_executable final : halyard::vulkan::Executable {
  using Executable::Executable;
};
