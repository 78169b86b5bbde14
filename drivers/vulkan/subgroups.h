// Subgroup sizes: what a kernel was compiled for, beside what the device gives.
#pragma once

#include <cstdint>
#include <string_view>

#include "device_features.h"
#include "executable_format.h"

namespace halyard::vulkan {

// The size to ask the device for; 0: none, since any does, or since the device has no other. INCOMPATIBLE:
// the kernel needs a size that the device cannot give.
Result<uint32_t> subgroup_size_for(const PipelineImage& pipeline, const Features& features,
                                   std::string_view device);

}  // namespace halyard::vulkan
