// Messages that stay short whatever the user has typed.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// The message with what it quotes shortened: text in single quotes, and the value in --name=VALUE,
// lose their middle where they are longer than 256 bytes, and then the whole does where it is
// longer than 4000. How many bytes were left out stands in their place.
std::string brief(std::string_view message);

}  // namespace halyard::tools
