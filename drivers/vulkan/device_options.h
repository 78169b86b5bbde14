// DeviceOptions: the options of a device's URI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "spirv_check.h"
#include "status.h"

namespace halyard::vulkan {

inline constexpr uint32_t kMaxQueues = 64;  // the number of bits of an affinity

struct DeviceOptions {
  std::string path;
  bool validate = false;
  uint32_t queues = 0;            // maximum number of compute queues; 0: the default
  uint32_t compile_threads = 1;   // threads that create the pipelines of one executable
  bool inline_completion = true;  // the submitting or waiting thread handles completed work
  bool push_descriptors = true;   // use push descriptors if the device has them
  bool separate_memory = false;   // the host does not see the device's own memory, even where it could
  bool robust = true;             // check bounds of accesses to bindings, if the device can
  SpirvPolicy spirv = SpirvPolicy::tolerant;
  std::optional<std::string> cache;  // folder of the pipeline cache; empty: none; not set: the user's cache
  // Parses `kind://path?key=value`. INVALID_ARGUMENT: an invalid option.
  static Result<DeviceOptions> parse(const halyard_device_open_args_t& args);
};

}  // namespace halyard::vulkan
