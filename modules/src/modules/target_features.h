// TargetFeatures: the processor features that a program's device code was compiled for, as far as the program
// says. No executable names them, and an instruction that the processor does not have ends the process. But
// compilers leave them in the text with which a program fails when none of its devices is there:
//
//   HAL device `...` not found or unavailable: #hal.device.target<"local",
//   [#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {cpu = "...", cpu_features =
//   "+avx512f,-xop,...", ...}>, ...]>
//
// Where a program has code of one format for several processors, only what all of them need is certain.
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
  // What the module's function `__init` says. A module that says nothing, or something that cannot be read,
  // changes nothing or makes nothing certain.
  void add(const vm::Module& module);
  // Any bytes with such text somewhere in them.
  void add(std::string_view bytes);

  // Sorted; empty where nothing is certain.
  std::vector<std::string> needed(std::string_view format) const;
  // INCOMPATIBLE, naming them, where the device knows features that are needed and has them not.
  Result<> check(const hal::Device& device, std::string_view format) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> needed_;  // by format
  bool certain_ = true;
};

}  // namespace halyard::modules
