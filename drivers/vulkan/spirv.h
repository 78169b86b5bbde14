// What this driver reads out of a SPIR-V module: its entry points, what they assume of the device, and, for
// modules that stand alone, the form of their bindings. Whether the module is valid is decided before
// (spirv_check.h); reading one that is not gives nonsense, but does no harm.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spirv_numbers.h"

namespace halyard::vulkan {

// A variable that a descriptor is bound to.
struct SpirvDescriptor {
  uint32_t set = 0;
  uint32_t binding = 0;
  uint32_t count = 1;       // elements; 0: as many as there are
  bool is_buffer = false;   // else an image or a sampler
  bool is_uniform = false;  // a uniform buffer, else a storage buffer
};

// What an entry point does among the invocations of a subgroup, itself or through what it calls.
struct SubgroupUse {
  bool any = false;  // an operation of subgroups, or a variable about them
  // The smallest size with which its constants make sense: a lane, a distance or a cluster that it names. 1:
  // it names none, or it looks at the size itself and so may do without them.
  uint32_t least = 1;
};

struct SpirvEntry {
  std::string name;
  uint32_t function = 0;                        // its id
  std::vector<SpirvDescriptor> descriptors;     // that it uses, itself or through what it calls
  std::array<uint32_t, 3> local_size = {};      // as the entry point says
  std::array<uint32_t, 3> workgroup_size = {};  // what counts: that, or a constant of the module
  // The specialization constant that a part of it comes from, where it does.
  std::array<std::optional<uint32_t>, 3> workgroup_constants = {};
  SubgroupUse subgroups;
};

struct SpirvModule {
  uint32_t version = 0;  // spirv_version()
  std::vector<uint32_t> capabilities;
  uint32_t addressing_model = 0;
  uint32_t memory_model = 0;
  std::vector<SpirvEntry> entries;                    // compute ones, in module order
  std::vector<std::string> processed;                 // texts of OpModuleProcessed
  bool has_descriptors = false;                       // a variable with a set or binding
  std::vector<std::vector<uint32_t>> push_constants;  // per such variable, offsets of its block's members

  bool has_capability(uint32_t capability) const;
};

// INVALID_ARGUMENT: not the beginning of a module.
Result<> check_spirv_header(std::span<const uint32_t> words);
// INVALID_ARGUMENT: no module, or an instruction that reaches beyond it.
Result<SpirvModule> read_spirv(std::span<const uint32_t> words);

}  // namespace halyard::vulkan
