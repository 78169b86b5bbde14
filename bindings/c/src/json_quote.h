// Quotes text as a string of JSON (RFC 8259).
#pragma once

#include <string>
#include <string_view>

namespace halyard::c {

// Includes the quotes. Bytes that are not UTF-8 become U+FFFD. Control characters, which could control a
// terminal, are escaped.
std::string json_quote(std::string_view text);

}  // namespace halyard::c
