// What a file that could not be read is instead: by its first bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace halyard {

struct ForeignFile {
  std::string_view is;         // "a Git LFS pointer": to be put after "is"
  std::string_view advice;     // what to do
  bool holds_for_all = false;  // the advice is for readers of any file, not only of parameters
};

// For messages about a file that a reader has refused. `extension`: that of the reader's own format, such as
// ".gguf", which is not foreign. No value: the bytes look like nothing known.
std::optional<ForeignFile> foreign_file(std::span<const uint8_t> bytes, std::string_view extension);

}  // namespace halyard
