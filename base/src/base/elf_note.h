// Reads notes from the bytes of an untrusted ELF file: the note of a plugin, and the linker's build id.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace halyard {

// A kind of plugin, and its names in messages.
struct PluginKind {
  const char* what;              // "driver"
  const char* abi;               // "driver ABI"
  uint32_t note_type;            // HALYARD_NOTE_TYPE_*
  size_t note_size;              // bytes of the note's description
  const char* note_macro;        // the macro that defines the note: "HALYARD_DRIVER_NOTE (halyard/driver.h)"
  const char* negotiate_symbol;  // the exported function
  const char* export_macro;      // the macro that exports the function: "HALYARD_DRIVER_EXPORT"
};

// Returns the `kind.note_size` bytes of the note's description, within `file`. INVALID_ARGUMENT: not a 64-bit
// shared library, damaged, or a plugin of another kind; NOT_FOUND: no note; INCOMPATIBLE: for another
// machine, or a newer type of note. `path` is for messages.
Result<std::span<const uint8_t>> find_note(std::span<const uint8_t> file, const std::string& path,
                                           const PluginKind& kind);

// Returns the linker's build id, NT_GNU_BUILD_ID; empty if there is none or the file is damaged.
std::string find_build_id(std::span<const uint8_t> file);

}  // namespace halyard
