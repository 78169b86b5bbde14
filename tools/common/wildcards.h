// Patterns of names.
#pragma once

#include <string_view>

namespace halyard::tools {

// Whether `text` is what the pattern says: '*' stands for anything, '?' for one character.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace halyard::tools
