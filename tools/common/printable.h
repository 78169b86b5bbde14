// Makes untrusted text safe to print.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// Replaces control characters (except newlines) and bytes that are not UTF-8 by \xNN, so that names in a
// hostile module cannot control a terminal.
std::string printable(std::string_view text);

}  // namespace halyard::tools
