// Checks UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace halyard {

// The number of bytes of the character at the start of `text`, 1 to 4; 0 if there is no valid one: bytes that
// are not UTF-8, an overlong form, a surrogate, a code point above U+10FFFF, or no text.
size_t utf8_size(std::string_view text);

}  // namespace halyard
