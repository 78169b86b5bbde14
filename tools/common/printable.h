// Text from outside, made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// The text with control characters (but newlines) and bytes that are not UTF-8 written as \xNN: names in a
// hostile module reach no terminal as commands.
std::string printable(std::string_view text);

}  // namespace halyard::tools
