// Reads notes from the bytes of an untrusted ELF file: the note of a plugin, and the linker's build id.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/plugin.h"
#include "base/status.h"

namespace halyard {

// Returns the `kind.note_size` bytes of the note's description, within `file`. INVALID_ARGUMENT: not a 64-bit
// shared library, damaged, or a plugin of another kind; NOT_FOUND: no note; INCOMPATIBLE: for another
// machine, or a newer type of note. `path` is for messages.
Result<std::span<const uint8_t>> find_note(std::span<const uint8_t> file, const std::string& path,
                                           const PluginKind& kind);

// Returns the linker's build id, NT_GNU_BUILD_ID; empty if there is none or the file is damaged.
std::string find_build_id(std::span<const uint8_t> file);

}  // namespace halyard
