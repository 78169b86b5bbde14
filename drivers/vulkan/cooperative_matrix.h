// Cooperative matrices (SPV_KHR_cooperative_matrix): whether a device has the shapes that a module uses, and
// how a SPIRV-Tools that is older than they are can judge such a module.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device_features.h"

namespace halyard::vulkan {

// INCOMPATIBLE: a product of shapes and types that the device does not list. `words` has whole instructions.
Result<> check_cooperative_matrices(std::span<const uint32_t> words, const Features& features,
                                    std::string_view device);

// The same module with the matrices of SPV_NV_cooperative_matrix, from which the KHR extension was made: the
// instructions are the same but for the order of operands, and SPIRV-Tools knows them. For judging only.
// INVALID_ARGUMENT: what would be lost on the way, and so be judged by nobody, is not as it should be.
Result<std::vector<uint32_t>> with_older_matrices(std::span<const uint32_t> words);

}  // namespace halyard::vulkan
