// The note of a plugin, out of the bytes of its file. Trusts nothing in it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/plugin.h"
#include "base/status.h"

namespace halyard {

// The `kind.note_size` bytes of the note's description, within `file`. INVALID_ARGUMENT: no shared library of
// 64 bits, damaged, or a plugin of another kind; NOT_FOUND: no note; INCOMPATIBLE: for another machine, or a
// note of a type that came later. `path` is for messages.
Result<std::span<const uint8_t>> find_note(std::span<const uint8_t> file, const std::string& path,
                                           const PluginKind& kind);

}  // namespace halyard
