// Escapes text for XML.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// Escapes text for attributes and contents. Control characters and bytes that are not UTF-8, which XML cannot
// represent, become \xNN. Newlines stay newlines, also in attributes.
std::string xml(std::string_view text);

}  // namespace halyard::tools
