// Patterns of names.
#pragma once

#include <string_view>

namespace halyard::tools {

// Whether the pattern matches all of `text`: '*' stands for any text, '?' for one character.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace halyard::tools
