// Matches from left to right. After a mismatch the last star matches one more character.
#include "common/wildcards.h"

namespace halyard::tools {

bool matches(std::string_view pattern, std::string_view text) {
  size_t at = 0, next = 0, star = std::string_view::npos, retry = 0;
  while (next < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      retry = next;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[next])) {
      ++at;
      ++next;
    } else if (star != std::string_view::npos) {  // the last star matches one more character
      at = star + 1;
      next = ++retry;
    } else {
      return false;
    }
  }
  return pattern.substr(at).find_first_not_of('*') == std::string_view::npos;
}

}  // namespace halyard::tools
