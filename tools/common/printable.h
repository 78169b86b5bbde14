// Makes text from outside safe to print.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// The text with control characters (except newlines) and bytes that are not UTF-8 as \xNN, so that names in a
// hostile module cannot send commands to a terminal.
std::string printable(std::string_view text);

}  // namespace halyard::tools
