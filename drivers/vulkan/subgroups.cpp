// Selects a subgroup size.
#include "subgroups.h"

#include <algorithm>
#include <bit>

namespace halyard::vulkan {

namespace {

uint64_t invocations_of(const PipelineImage& pipeline) {
  uint64_t invocations = 1;
  for (const uint32_t extent : pipeline.workgroup_size) invocations *= std::max(extent, 1u);
  return invocations;
}

// The size for which the kernel was compiled; 0: unknown, or the program also states sizes for kernels that
// do not depend on them. If there are several sizes, compilers use the first that divides the workgroup.
uint32_t stated_size(const PipelineImage& pipeline, std::span<const uint32_t> compiled) {
  if (pipeline.subgroup_size != 0) return pipeline.subgroup_size;
  if (compiled.empty() || !pipeline.subgroups.whole) return 0;
  const uint64_t invocations = invocations_of(pipeline);
  const auto divides = [&](uint32_t size) {
    return size >= pipeline.subgroups.least && invocations % size == 0;
  };
  const auto first = std::ranges::find_if(compiled, divides);
  return first == compiled.end() ? compiled.front() : *first;
}

// Whether pipelines may request this subgroup size for workgroups of this size.
bool can_ask_for(uint32_t size, const PipelineImage& pipeline, const Features& features) {
  const VkPhysicalDeviceSubgroupSizeControlProperties& sizes = features.subgroup_sizes;
  if (!features.subgroup_size.subgroupSizeControl || !std::has_single_bit(size) ||
      size < sizes.minSubgroupSize || size > sizes.maxSubgroupSize ||
      !(sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT))
    return false;
  return invocations_of(pipeline) <= uint64_t{size} * sizes.maxComputeWorkgroupSubgroups;
}

std::string sizes_text(const Features& features) {
  const VkPhysicalDeviceSubgroupSizeControlProperties& sizes = features.subgroup_sizes;
  if (!features.subgroup_size.subgroupSizeControl)
    return fmt::format("{} and no choice (subgroupSizeControl)", features.subgroup.subgroupSize);
  if (sizes.minSubgroupSize == sizes.maxSubgroupSize) return fmt::format("{}", sizes.minSubgroupSize);
  return fmt::format("{} to {}, with {} in a workgroup at most", sizes.minSubgroupSize, sizes.maxSubgroupSize,
                     sizes.maxComputeWorkgroupSubgroups);
}

}  // namespace

Result<uint32_t> subgroup_size_for(const PipelineImage& pipeline, std::span<const uint32_t> compiled,
                                   const Features& features, std::string_view device) {
  // Since SPIR-V 1.6, a pipeline that does not request a size may get any size of the device.
  const bool varies = features.subgroup_size.subgroupSizeControl && pipeline.version >= spirv_version(1, 6);
  const uint32_t least = varies ? features.subgroup_sizes.minSubgroupSize : features.subgroup.subgroupSize;
  const uint32_t most = varies ? features.subgroup_sizes.maxSubgroupSize : features.subgroup.subgroupSize;
  const uint32_t stated = stated_size(pipeline, compiled);
  if (stated != 0) {
    if (least == stated && most == stated) return 0;
    if (can_ask_for(stated, pipeline, features)) return stated;
    if (!pipeline.subgroups.any) return 0;
    return fail(HALYARD_INCOMPATIBLE,
                "pipeline '{}' was compiled for subgroups of {}, but device '{}' has {}; compile it for this "
                "device",
                pipeline.name, stated, device, sizes_text(features));
  }
  const uint32_t needed = pipeline.subgroups.least;
  if (needed <= least) return 0;
  const uint32_t wanted = std::max(needed, features.subgroup_sizes.minSubgroupSize);
  if (can_ask_for(wanted, pipeline, features)) return wanted;
  return fail(
      HALYARD_INCOMPATIBLE,
      "pipeline '{}' names lanes, distances or clusters of subgroups of {} or more, but device '{}' has "
      "{}; compile it for this device",
      pipeline.name, needed, device, sizes_text(features));
}

}  // namespace halyard::vulkan
