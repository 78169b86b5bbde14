// The bytecode versions, the compilers that produce them, and the message for an unsupported version.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace halyard::vm {

struct Release {
  uint32_t bytecode;           // major version; the minor version is 0
  std::string_view compilers;  // versions of IREE
};

// Looks up a `bytecode_version` field; null if it is not supported.
const Release* find_release(uint32_t version_word);

// INVALID_ARGUMENT, with the file's version, the supported versions, and what to do. `made_by` may be empty.
std::unexpected<Status> unsupported_version(uint32_t version_word, std::string_view made_by = {});

// The `bytecode_version` of a module with the table layout of bytecode 13 or older; 0 if it does not look
// like one. `flatbuffer` begins with a size prefix and may be damaged.
uint32_t version_of_older_layout(std::span<const uint8_t> flatbuffer);

}  // namespace halyard::vm
