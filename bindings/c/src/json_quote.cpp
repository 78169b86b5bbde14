// Quotes one character at a time.
#include "json_quote.h"

#include <fmt/core.h>

#include <cstdint>

#include "text/utf8.h"

namespace halyard::c {

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
