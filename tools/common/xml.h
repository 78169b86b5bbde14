// Text in XML.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// For attributes and contents. What XML cannot hold, control characters and bytes that are not UTF-8, is
// written as \xNN; newlines stay newlines, also in attributes.
std::string xml(std::string_view text);

}  // namespace halyard::tools
