// Cooperative matrices (SPV_KHR_cooperative_matrix): checks that a device supports the shapes that a module
// uses, and validates such a module with a SPIRV-Tools that is older than the extension.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device_features.h"

namespace halyard::vulkan {

// INCOMPATIBLE: the module uses a product of shapes and types that the device does not list. `words` must
// contain whole instructions.
Result<> check_cooperative_matrices(std::span<const uint32_t> words, const Features& features,
                                    std::string_view device);

// Rewrites the module to the matrices of SPV_NV_cooperative_matrix, the predecessor of the KHR extension: the
// instructions are the same except for the order of operands, and SPIRV-Tools supports them. For validation
// only. INVALID_ARGUMENT: an error in a part that the older extension cannot express, so that SPIRV-Tools
// would not detect it.
Result<std::vector<uint32_t>> with_older_matrices(std::span<const uint32_t> words);

}  // namespace halyard::vulkan
