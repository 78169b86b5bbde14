// Checks that a SPIR-V module may be passed to the device's compiler, which assumes that modules are valid.
// SPIRV-Tools validates it. The device option `spirv` sets the strictness, because some compilers write
// modules that devices accept and SPIRV-Tools does not.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device_features.h"

namespace halyard::vulkan {

enum class SpirvPolicy : uint8_t {
  strict,    // SPIRV-Tools decides
  tolerant,  // valid in the version of the header or in a later one that the device accepts; known compiler
             // errors are repaired; the feature check decides about parts that SPIRV-Tools does not know
  off,       // SPIRV-Tools is not used
};

struct SpirvJudge {
  SpirvPolicy policy = SpirvPolicy::tolerant;
  const Features& features;
  std::string_view device;  // name, for messages
};

// Stores the module for the device, possibly repaired, in `words`. INVALID_ARGUMENT: not valid for Vulkan.
// INCOMPATIBLE: valid, but it needs features that the device lacks.
Result<> check_spirv(std::vector<uint32_t>& words, const SpirvJudge& judge);

// Corrects the variable lists of entry points according to the version in the header: before SPIR-V 1.4 they
// contain only inputs and outputs, since then all variables outside of functions. Some compilers always write
// the long list. `words` must contain whole instructions.
std::vector<uint32_t> with_interfaces(std::span<const uint32_t> words);

}  // namespace halyard::vulkan
