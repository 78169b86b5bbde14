// What the FlatBuffers library does not check: null elements in vectors of offsets, unions whose tag and
// value contradict each other, tables with fields outside of their stated size, and constants that lie over
// anything else. Specified by module-format.md, section 4.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace halyard::schema {
struct BytecodeModule;
}

namespace halyard::vm {

// `flatbuffer` holds the module, with its size prefix, and has passed the library's verifier; `file_offset`
// is where it begins in the file, for messages. INVALID_ARGUMENT.
Result<> check_structure(const schema::BytecodeModule& module, std::span<const uint8_t> flatbuffer,
                         uint64_t file_offset);

}  // namespace halyard::vm
