// Reads the parts of a SPIR-V module that this driver needs: entry points, their requirements on the device
// and, for stand-alone modules, their bindings. The module has been validated (spirv_check.h); reading an
// invalid module gives wrong results, but is memory-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spirv_numbers.h"

namespace halyard::vulkan {

// A variable bound to a descriptor.
struct SpirvDescriptor {
  uint32_t set = 0;
  uint32_t binding = 0;
  uint32_t count = 1;       // array elements; 0: unsized
  bool is_buffer = false;   // false: an image or a sampler
  bool is_uniform = false;  // true: a uniform buffer; false: a storage buffer
};

// The use of subgroups by an entry point and the functions that it calls.
struct SubgroupUse {
  bool any = false;  // a subgroup operation or variable
  // The results depend on the subgroup size: there are operations among all invocations of a subgroup, or
  // variables that number the invocations. Operations among fixed neighbours do not count, nor do entry
  // points that read the size, because they can adapt.
  bool whole = false;
  // The smallest subgroup size for which the constants (lanes, distances, cluster sizes) make sense. 1: there
  // are no such constants, or the entry point reads the size and can adapt.
  uint32_t least = 1;
};

struct SpirvEntry {
  std::string name;
  uint32_t function = 0;                        // its id
  std::vector<SpirvDescriptor> descriptors;     // of variables that it or its callees use
  std::array<uint32_t, 3> local_size = {};      // declared by the entry point
  std::array<uint32_t, 3> workgroup_size = {};  // the effective size: local_size, or a constant of the module
  // The specialization constants that determine parts of it, if any.
  std::array<std::optional<uint32_t>, 3> workgroup_constants = {};
  SubgroupUse subgroups;
};

struct SpirvModule {
  uint32_t version = 0;  // spirv_version()
  std::vector<uint32_t> capabilities;
  uint32_t addressing_model = 0;
  uint32_t memory_model = 0;
  std::vector<SpirvEntry> entries;                    // compute entry points, in module order
  std::vector<std::string> processed;                 // strings of OpModuleProcessed
  bool has_descriptors = false;                       // some variable has a set or binding
  std::vector<std::vector<uint32_t>> push_constants;  // for each variable, offsets of its block's members

  bool has_capability(uint32_t capability) const;
};

// INVALID_ARGUMENT: not the start of a module.
Result<> check_spirv_header(std::span<const uint32_t> words);
// INVALID_ARGUMENT: not a module, or an instruction that extends past its end.
Result<SpirvModule> read_spirv(std::span<const uint32_t> words);

}  // namespace halyard::vulkan
