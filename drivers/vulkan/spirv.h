// What this driver reads out of a SPIR-V module: what it needs of a device, its entry points, and, for
// modules that stand alone, the form of their bindings. Validity is judged by SPIRV-Tools before anything
// else looks at a module: what a Vulkan driver does with one that is not valid is not defined.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "status.h"

namespace halyard::vulkan {

// A variable that a descriptor is bound to.
struct SpirvDescriptor {
  uint32_t set = 0;
  uint32_t binding = 0;
  uint32_t count = 1;       // elements; 0: as many as there are
  bool is_buffer = false;   // else an image or a sampler
  bool is_uniform = false;  // a uniform buffer, else a storage buffer
};

struct SpirvEntry {
  std::string name;
  uint32_t function = 0;                        // its id
  std::vector<SpirvDescriptor> descriptors;     // that it uses, itself or through what it calls
  std::array<uint32_t, 3> local_size = {};      // as the entry point says
  std::array<uint32_t, 3> workgroup_size = {};  // what counts: that, or a constant of the module
  // The specialization constant that a part of it comes from, where it does.
  std::array<std::optional<uint32_t>, 3> workgroup_constants = {};
};

struct SpirvModule {
  std::vector<uint32_t> capabilities;
  uint32_t addressing_model = 0;
  uint32_t memory_model = 0;
  std::vector<SpirvEntry> entries;                    // compute ones, in module order
  std::vector<std::string> processed;                 // texts of OpModuleProcessed
  bool has_descriptors = false;                       // a variable with a set or binding
  std::vector<std::vector<uint32_t>> push_constants;  // per such variable, offsets of its block's members

  bool has_capability(uint32_t capability) const;
};

constexpr uint32_t kSpirvMagic = 0x07230203;

// INVALID_ARGUMENT: not a valid module for Vulkan.
Result<SpirvModule> read_spirv(std::span<const uint32_t> words);

}  // namespace halyard::vulkan
