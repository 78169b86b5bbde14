// Patterns for names.
#pragma once

#include <string_view>

namespace halyard::tools {

// Whether the pattern matches the whole text: '*' matches any text, '?' one character.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace halyard::tools
