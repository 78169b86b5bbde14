// Suggestions for misspelt names. Declares the function of base/suggest.h, because tools include no header of
// base. Its source is compiled into the tools as well (CMakeLists.txt).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace halyard {

// "; did you mean 'x'?" for the candidate nearest to `word`, or "" if none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace halyard
