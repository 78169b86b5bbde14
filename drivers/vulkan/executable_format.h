// Reads the containers of Vulkan executables into one form. Only the maximum number of push constants and the
// validation of SPIR-V depend on the device. Specified by exec-vulkan.md.
//
//   vulkan-spirv-fb       FlatBuffer, bindings are descriptors
//   vulkan-spirv-fb-ptr   the same; kernels may use physical addresses
//   vulkan-spirv-bda-v1   the same FlatBuffer, bindings are device addresses
//   vulkan-spirv-bda-raw  a SPIR-V module, bindings are device addresses
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spirv.h"
#include "spirv_check.h"

namespace halyard::vulkan {

enum class ContainerKind : uint8_t { flatbuffer, spirv };

struct ExecutableFormat {
  const char* name;
  ContainerKind container;
  bool by_address;       // bindings are device addresses
  bool needs_addresses;  // the device must support them
};
inline constexpr ExecutableFormat kExecutableFormats[] = {
    {"vulkan-spirv-fb", ContainerKind::flatbuffer, false, false},
    {"vulkan-spirv-fb-ptr", ContainerKind::flatbuffer, false, true},
    {"vulkan-spirv-bda-v1", ContainerKind::flatbuffer, true, true},
    {"vulkan-spirv-bda-raw", ContainerKind::spirv, true, true},
};
// Null: unknown format.
const ExecutableFormat* find_format(std::string_view name);

struct AddressBinding {
  uint32_t alignment = 1;
  uint64_t length = 0;
};

// The locations of the root and of the kernel's constants in the push constants.
struct AddressLayout {
  static constexpr uint32_t kRootSize = 32;
  uint32_t root_offset = 0;
  uint32_t constant_offset = kRootSize;
  uint32_t constant_count = 0;
  std::vector<AddressBinding> bindings;
};

struct SetBinding {
  uint32_t binding = 0;
  uint32_t type = 0;  // VkDescriptorType
  uint32_t count = 0;
};

struct LayoutImage {
  std::vector<uint32_t> sets;  // indices in ExecutableImage::sets
  uint32_t push_size = 0;      // bytes, from 0
};

struct PipelineImage {
  std::string name;
  std::string source;   // where it is in the source: "model.mlir:12"; may be empty
  uint32_t module = 0;  // index in ExecutableImage::modules
  uint32_t layout = 0;
  uint32_t version = 0;        // SpirvModule
  uint32_t subgroup_size = 0;  // 0: any
  std::string refusal;         // why this device cannot run it; empty: it can
  bool by_address = false;
  AddressLayout addresses;
  std::array<uint32_t, 3> local_size = {};                          // SpirvEntry
  std::array<uint32_t, 3> workgroup_size = {};                      // SpirvEntry
  std::array<std::optional<uint32_t>, 3> workgroup_constants = {};  // SpirvEntry
  SubgroupUse subgroups;                                            // SpirvEntry
};

struct ModuleImage {
  std::vector<uint32_t> words;
  SpirvModule spirv;
};

struct ExecutableImage {
  std::vector<std::vector<SetBinding>> sets;
  std::vector<LayoutImage> layouts;
  std::vector<ModuleImage> modules;
  std::vector<PipelineImage> pipelines;
};

// INVALID_ARGUMENT: malformed data. INCOMPATIBLE: SPIR-V that needs features that the device lacks. The data
// is untrusted.
Result<ExecutableImage> read_executable(const ExecutableFormat& format, std::span<const uint8_t> data,
                                        uint32_t most_push_bytes, const SpirvJudge& judge);
// Quick check that the data begins like the format. INVALID_ARGUMENT, with the reason.
Result<> glance_at(const ExecutableFormat& format, std::span<const uint8_t> data);

}  // namespace halyard::vulkan
