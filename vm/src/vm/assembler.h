// Assembler: .vmasm text to the bytes of a module. The language is that of vmasm.md with Halyard's additions:
// attributes, dependencies, rodata as text or as a nested module (docs/vmasm.md).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halyard::vm {

struct AssembleOptions {
  uint32_t bytecode_version = 17;    // 15, 16 or 17; an opcode that is newer is an error
  std::string_view file = "<text>";  // for messages: "file:line: ..."
};

// The flat form: u32 size, FlatBuffer, rodata embedded. INVALID_ARGUMENT, OUT_OF_RANGE, UNIMPLEMENTED with
// file and line.
Result<std::vector<uint8_t>> assemble(std::string_view text, const AssembleOptions& options);

}  // namespace halyard::vm
