// Suggestions for misspelt names. For messages only.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace halyard {

// Returns "; did you mean 'x'?" for the candidate nearest to `word`, by edits and swaps of adjacent
// characters; "" if none is near. Among equally near candidates the first wins.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace halyard
