// Near misses: what somebody may have meant who wrote a name that does not exist. For messages only.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace halyard {

// "; did you mean 'x'?" for the candidate nearest to `word`, by edits and swaps of neighbouring characters;
// "" where none is near. The first of equally near ones wins.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace halyard
