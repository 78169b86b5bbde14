// Shortens messages that contain long user input.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// Shortens quotations longer than 256 bytes: text in single quotes, and the value in --name=VALUE. Then
// shortens the whole message if it is longer than 4000 bytes. The middle is replaced by the number of removed
// bytes.
std::string brief(std::string_view message);

}  // namespace halyard::tools
