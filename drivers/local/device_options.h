// DeviceOptions: the kind of a device and the options of its URI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "status.h"
#include "vmvx/kernels.h"

namespace halyard::local {

// When bytecode kernels are compiled: never, when loaded, or when hot.
enum class Jit : uint8_t { off, always, hot };

struct DeviceOptions {
  uint32_t workers = 0;   // maximum number of threads; 0: work runs on the thread that made it ready
  uint32_t queues = 1;    // reported to programs; all of them share one queue
  bool validate = false;  // see device_memory.h
  bool native = true;     // accept executables with machine code
  Jit jit = Jit::off;
  std::string jit_cache = {};             // folder for compiled kernels; empty: none
  bool fast_math = false;                 // for compiled kernels
  bool profile = false;                   // spans for the host's trace tell operations and bytes
  std::vector<std::string> plugins = {};  // arguments of Plugins::load(), in order
  const vmvx::Kernels* kernels = vmvx::find_kernels("best");
  // Parses `kind://path?key=value`. NOT_FOUND: unknown kind or path. INVALID_ARGUMENT: a bad option.
  static Result<DeviceOptions> parse(const halyard_device_open_args_t& args);
};

}  // namespace halyard::local
