// Assembler: converts .vmasm text to a module. The language is that of vmasm.md plus Halyard's additions,
// which cover everything in compiled modules that the base language cannot express (docs/vmasm.md).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halyard::vm {

struct AssembleOptions {
  uint32_t bytecode_version = 0;     // 15, 16 or 17, also for nested modules; 0: the text's version, else 17
  std::string_view file = "<text>";  // for messages: "file:line: ..."
};

// The size limit of a text, in bytes.
inline constexpr size_t kMaxAssembledText = size_t{256} << 20;

// Returns the flat form: u32 size, FlatBuffer, embedded rodata. INVALID_ARGUMENT, OUT_OF_RANGE, UNIMPLEMENTED
// with file and line. An opcode that is newer than the bytecode version is an error.
Result<std::vector<uint8_t>> assemble(std::string_view text, const AssembleOptions& options);

}  // namespace halyard::vm
