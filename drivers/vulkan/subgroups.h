// Subgroup sizes: selects one that suits the kernel and that the device supports.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "device_features.h"
#include "executable_format.h"

namespace halyard::vulkan {

// The size to request from the device; 0: none, because any size is suitable or the device has only one.
// `compiled`: the program says that it was compiled for one of these sizes. INCOMPATIBLE: the kernel needs a
// size that the device lacks.
Result<uint32_t> subgroup_size_for(const PipelineImage& pipeline, std::span<const uint32_t> compiled,
                                   const Features& features, std::string_view device);

}  // namespace halyard::vulkan
