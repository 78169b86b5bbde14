// Checks that the FlatBuffers library lacks: null elements in vectors of offsets, unions whose tag and value
// disagree, tables with fields outside their stated size, and constants that overlap other data. Specified by
// module-format.md, section 4.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace halyard::schema {
struct BytecodeModule;
}

namespace halyard::vm {

// `flatbuffer` contains the module, with its size prefix, and has passed the library's verifier. It begins at
// `file_offset`, which is for messages. INVALID_ARGUMENT: a check failed.
Result<> check_structure(const schema::BytecodeModule& module, std::span<const uint8_t> flatbuffer,
                         uint64_t file_offset);

}  // namespace halyard::vm
