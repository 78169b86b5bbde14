// Whether a SPIR-V module may reach the device's own compiler, which takes it for granted that a module is
// valid. SPIRV-Tools judges that. How far it has the last word is the device's option `spirv`: compilers
// write modules that devices take and SPIRV-Tools does not.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device_features.h"

namespace halyard::vulkan {

enum class SpirvPolicy : uint8_t {
  strict,    // SPIRV-Tools has the last word
  tolerant,  // known slips of compilers are repaired, and what SPIRV-Tools does not know is for the features
  off,       // SPIRV-Tools is not asked
};

struct SpirvJudge {
  SpirvPolicy policy = SpirvPolicy::tolerant;
  const Features& features;
  std::string_view device;  // its name, for messages
};

// Leaves the words that the device shall get: those given, or repaired ones. INVALID_ARGUMENT: not valid for
// Vulkan; INCOMPATIBLE: valid, but it needs what the device has not.
Result<> check_spirv(std::vector<uint32_t>& words, const SpirvJudge& judge);

// The module with entry points that list what its version allows: before 1.4 inputs and outputs, since then
// every variable outside of functions. Compilers write the long list whatever the version is. `words` has
// whole instructions.
std::vector<uint32_t> with_short_interfaces(std::span<const uint32_t> words);

}  // namespace halyard::vulkan
