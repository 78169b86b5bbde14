// Text in XML.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// The text escaped for attributes and contents. Control characters and bytes that are not UTF-8, which XML
// cannot hold, become \xNN; newlines stay newlines, also in attributes.
std::string xml(std::string_view text);

}  // namespace halyard::tools
