// Recognizes, by their first bytes, files of formats that a reader does not support.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace halyard {

struct ForeignFile {
  std::string_view is;         // "a Git LFS pointer": follows "is" in a message
  std::string_view advice;     // what to do
  bool holds_for_all = false;  // the advice applies to any file, not only to parameter files
};

// For messages about a file that a reader has refused. `extension` is that of the reader's own format, such
// as ".gguf", which does not count as foreign. No value: the format is unknown.
std::optional<ForeignFile> foreign_file(std::span<const uint8_t> bytes, std::string_view extension);

}  // namespace halyard
