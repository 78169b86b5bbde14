// Messages stay short, however long the user's input is.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// Shortens quotations in a message: text in single quotes, and the value in --name=VALUE, lose their middle
// if they are longer than 256 bytes. Then the whole message does if it is longer than 4000. The number of
// bytes left out takes their place.
std::string brief(std::string_view message);

}  // namespace halyard::tools
