// Assembler: .vmasm text to the bytes of a module. The language is that of vmasm.md with Halyard's additions:
// what compiled modules have and that language cannot say (docs/vmasm.md).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halyard::vm {

struct AssembleOptions {
  uint32_t bytecode_version = 0;     // 15, 16 or 17, also for nested modules; 0: what the text says, else 17
  std::string_view file = "<text>";  // for messages: "file:line: ..."
};

// More text than this is not assembled.
inline constexpr size_t kMaxAssembledText = size_t{256} << 20;

// The flat form: u32 size, FlatBuffer, rodata embedded. INVALID_ARGUMENT, OUT_OF_RANGE, UNIMPLEMENTED with
// file and line. An opcode that is newer than the bytecode version is an error.
Result<std::vector<uint8_t>> assemble(std::string_view text, const AssembleOptions& options);

}  // namespace halyard::vm
