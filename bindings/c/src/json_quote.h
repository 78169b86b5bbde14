// Text as a string of JSON (RFC 8259).
#pragma once

#include <string>
#include <string_view>

namespace halyard::c {

// With its quotes. Bytes that are not UTF-8 become U+FFFD; control characters, which terminals obey, are
// escaped.
std::string json_quote(std::string_view text);

}  // namespace halyard::c
