// The names of the kernels of executables that are no bytecode.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halyard::analysis {

// In the order of the kernels' numbers. Empty if the bytes are neither a Vulkan executable nor an embedded
// ELF library for a 64-bit little-endian processor, or are broken.
std::vector<std::string> native_names(std::span<const uint8_t> bytes);

}  // namespace halyard::analysis
