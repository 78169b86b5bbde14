// TargetFeatures: the processor features and the subgroup sizes for which a program's device code was
// compiled, if the program states them. Executables do not state them, and an instruction that the processor
// lacks kills the process. But compilers write them into the message with which a program fails if none of
// its devices is available:
//
//   HAL device `...` not found or unavailable: #hal.device.target<"local",
//   [#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {cpu = "...", cpu_features =
//   "+avx512f,-xop,...", ...}>, ...]>
//
//   #hal.device.target<"vulkan", [#hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb",
//   {iree_codegen.target_info = #iree_gpu.target<..., subgroup_size_choices = [32, 64], ...>}>]>
//
// If a program has code of one format for several processors, only the features that all of them need are
// certain, and the code may use the subgroup sizes of any of them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hal/device/device.h"
#include "vm/module/module.h"

namespace halyard::modules {

class TargetFeatures {
 public:
  // Reads the module's function `__init`. Without such a message nothing changes; after an unreadable message
  // no feature is certain.
  void add(const vm::Module& module);
  // Reads any bytes that may contain such a message.
  void add(std::string_view bytes);

  // The formats of all targets found, sorted: {"embedded-elf-arm_64"}.
  std::vector<std::string> formats() const;
  // The required features, sorted; empty if nothing is certain.
  std::vector<std::string> needed(std::string_view format) const;
  // In the program's order, because the compiler uses the first size that suits a kernel. Empty if nothing is
  // certain.
  std::vector<uint32_t> subgroup_sizes(std::string_view format) const;
  // INCOMPATIBLE: the device knows a required feature but does not have it; the message names the features.
  Result<> check(const hal::Device& device, std::string_view format) const;

 private:
  struct Needs {
    std::vector<std::string> features;
    std::vector<uint32_t> subgroup_sizes;
  };
  std::map<std::string, Needs, std::less<>> needed_;  // by format
  bool certain_ = true;
};

}  // namespace halyard::modules
