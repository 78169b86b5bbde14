// Modules with machine code: what vm-cc --emit=vmfb uses of this layer. Includes no other header of Halyard
// than translate.h, because tools have their own statuses and bytes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "aot/translate.h"

namespace halyard::aot {

struct EmitOptions {
  std::vector<std::string> processors;  // "x86-64-v3", or with more features: "x86-64-v4+avx512vnni"
  // Bytes of local memory for the buffers of a kernel whose size is known at run time; 0: kernels with such
  // buffers stay portable.
  uint64_t dynamic_memory = 0;
  bool keep_portable = true;  // the portable kernels stay, for devices that have none of the processors
};

struct Emitted {
  std::vector<uint8_t> module;
  std::string report;                // for people: a line for each executable and processor
  std::vector<std::string> refused;  // executables that stayed portable, and why
};

// The names of the processors, for help.
std::vector<std::string> processor_names();
// INVALID_ARGUMENT: an unknown name, with the known ones; the same name twice; no name.
std::expected<void, Refusal> check_processors(const std::vector<std::string>& names);

// Compiles the portable kernels of a module for processors, and makes the module choose by the device. The
// same module and options give the same bytes. INVALID_ARGUMENT and the verifier's other codes: the module is
// not valid; INVALID_ARGUMENT: an unknown processor; FAILED_PRECONDITION: the module has no portable kernels;
// NOT_FOUND or INCOMPATIBLE: the library that compiles is not installed, or is of another build;
// UNIMPLEMENTED: no executable can be compiled, or the host code cannot be changed.
std::expected<Emitted, Refusal> emit(std::span<const uint8_t> module, const EmitOptions& options);

}  // namespace halyard::aot
