// Decodes UTF-8, one character at a time.
#include "common/printable.h"

#include <fmt/core.h>

#include <cstdint>

namespace halyard::tools {

namespace {

// The size of the printable character at the start of `text`, in bytes; 0 if there is none.
size_t printable_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first == '\n' || (first >= 0x20 && first < 0x7F)) return 1;
  const size_t size = first >= 0xC2 && first < 0xE0   ? 2
                      : first >= 0xE0 && first < 0xF0 ? 3
                      : first >= 0xF0 && first < 0xF5 ? 4
                                                      : 0;
  if (size == 0 || text.size() < size) return 0;
  uint32_t code = first & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kMinCodePoint[] = {0, 0, 0xA0, 0x800, 0x10000};  // 0x80 to 0x9F are control characters
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code >= kMinCodePoint[size] && code < 0x110000 && !surrogate ? size : 0;
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
