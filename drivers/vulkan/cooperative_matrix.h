// Cooperative matrices (SPV_KHR_cooperative_matrix): whether a device has the shapes that a module uses, and
// how to validate such a module with a SPIRV-Tools that is older than the extension.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device_features.h"

namespace halyard::vulkan {

// INCOMPATIBLE: the module uses a product of shapes and types that the device does not list. `words` must
// have whole instructions.
Result<> check_cooperative_matrices(std::span<const uint32_t> words, const Features& features,
                                    std::string_view device);

// Rewrites the module to the matrices of SPV_NV_cooperative_matrix, the predecessor of the KHR extension: the
// instructions are the same except for the order of operands, and SPIRV-Tools knows them. For validation
// only. INVALID_ARGUMENT: an error in a part that the older extension cannot express, so that SPIRV-Tools
// would not see it.
Result<std::vector<uint32_t>> with_older_matrices(std::span<const uint32_t> words);

}  // namespace halyard::vulkan
