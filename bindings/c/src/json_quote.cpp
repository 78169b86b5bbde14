// Quotes one character at a time.
#include "json_quote.h"

#include <fmt/core.h>

#include <cstdint>

namespace halyard::c {
namespace {

// The size, in bytes, of the UTF-8 character at the start of `text`; 0 if it is invalid.
size_t utf8_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xC2 && first < 0xE0   ? 2
                      : first >= 0xE0 && first < 0xF0 ? 3
                      : first >= 0xF0 && first < 0xF5 ? 4
                                                      : 0;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90))
    return 0;
  return size;
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t size = utf8_size(text);
    const auto first = static_cast<uint8_t>(text[0]);
    const auto second = static_cast<uint8_t>(size == 2 ? text[1] : 0);
    if (size == 0) {
      quoted += "\xEF\xBF\xBD";
    } else if (first == '"' || first == '\\') {
      quoted += '\\';
      quoted += text[0];
    } else if (size == 1 && (first < 0x20 || first == 0x7F)) {
      quoted += fmt::format("\\u{:04x}", first);
    } else if (size == 2 && first == 0xC2 && second < 0xA0) {
      quoted += fmt::format("\\u{:04x}", second);
    } else {
      quoted += text.substr(0, size);
    }
    text.remove_prefix(size ? size : 1);
  }
  return quoted + '"';
}

}  // namespace halyard::c
