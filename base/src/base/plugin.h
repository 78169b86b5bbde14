// Plugins: third-party shared libraries (drivers, native modules). The file's ELF note is checked before any
// of its code runs; then the library is opened and its entry function is looked up. Negotiation depends on
// the kind of plugin.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/elf_note.h"
#include "base/status.h"

namespace halyard {

// Returns the description of the file's note, `note_size` bytes, without running code of the file. NOT_FOUND:
// no such file, or no note; INVALID_ARGUMENT: not a 64-bit shared library, damaged, truncated, or a plugin of
// another kind; INCOMPATIBLE: for another machine, or a newer type of note. Every message contains the path.
Result<std::vector<uint8_t>> read_plugin_note(const std::string& path, const PluginKind& kind);

template <typename Note>
Result<Note> read_note(const std::string& path, const PluginKind& kind) {
  const std::vector<uint8_t> bytes = HALYARD_TRY(read_plugin_note(path, kind));
  Note note;
  std::memcpy(&note, bytes.data(), sizeof note);
  return note;
}

// ABI versions. check_abi: INCOMPATIBLE if plugin and host have no version in common, and always for version
// 0.
struct AbiRange {
  uint32_t low;
  uint32_t high;
};
std::string to_text(AbiRange range);  // "1" or "1..3"
Result<> check_abi(const PluginKind& kind, const std::string& path, AbiRange plugin, AbiRange host);

// "AddressSanitizer" for a HALYARD_SANITIZER_*, "no sanitizer" for 0; static storage.
const char* sanitizer_name(uint32_t kind);
// INCOMPATIBLE: the library was built with a sanitizer that this host lacks.
Result<> check_sanitizer(const PluginKind& kind, const std::string& path, uint32_t sanitizer);

// Returns the folder of the shared library or program that contains this code; empty if unknown.
std::string own_folder();

// Converts a path so that the system's loader does not search for it. INVALID_ARGUMENT: not a path.
Result<std::string> plugin_path(const std::string& path, const PluginKind& kind);

// Opens the library and returns the address of its entry function. The library is never closed, because any
// thread may be running its code. UNAVAILABLE: a dependency is missing; INCOMPATIBLE: the library lacks the
// function.
Result<void*> open_plugin(const std::string& path, const PluginKind& kind);

// A text field of a note: zero-padded, not always terminated.
template <size_t N>
std::string_view padded_text(const char (&text)[N]) {
  return {text, ::strnlen(text, N)};
}

}  // namespace halyard
