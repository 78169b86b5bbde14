// Checks one character at a time.
#include "common/printable.h"

#include <fmt/core.h>

#include <cstdint>

#include "text/utf8.h"

namespace halyard::tools {

namespace {

// The size of the printable character at the start of `text`, in bytes; 0 if there is none.
size_t printable_size(std::string_view text) {
  const size_t size = utf8_size(text);
  const auto first = static_cast<uint8_t>(text[0]);
  if (size == 1) return first == '\n' || (first >= 0x20 && first < 0x7F) ? 1 : 0;
  const bool is_control = first == 0xC2 && static_cast<uint8_t>(text[1]) < 0xA0;  // U+0080 to U+009F
  return is_control ? 0 : size;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const size_t size = printable_size(text);
    if (size) {
      safe += text.substr(0, size);
    } else {
      safe += fmt::format("\\x{:02X}", static_cast<uint8_t>(text.front()));
    }
    text.remove_prefix(size ? size : 1);
  }
  return safe;
}

}  // namespace halyard::tools
