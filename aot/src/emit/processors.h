// The processors for which kernels are compiled: how people, LLVM, and devices name them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halyard::aot {

struct Processor {
  std::string name;    // as the user wrote it
  std::string format;  // of executables: "embedded-elf-x86_64"
  std::string triple;  // of LLVM
  std::string llvm_name;
  std::string llvm_features;          // "+a,+b"
  std::vector<std::string> features;  // that a device must have: keys of hal.cpu
  uint32_t rank = 0;                  // of two that a device has, the one with the higher rank is better
};

std::vector<std::string_view> known_processors();

// INVALID_ARGUMENT: an unknown name, with the known ones; the same name twice; no name. In the order of their
// ranks.
Result<std::vector<Processor>> read_processors(std::span<const std::string> names);

}  // namespace halyard::aot
