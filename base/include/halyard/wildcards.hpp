// Patterns for names: '*' matches any text, '?' one character. C++20, header only, so that the tools and the
// library share one implementation.
#ifndef HALYARD_WILDCARDS_HPP_
#define HALYARD_WILDCARDS_HPP_

#include <cstddef>
#include <string_view>

namespace halyard {

// Whether the pattern matches the whole text. The time is at most the product of both lengths.
constexpr bool matches_wildcards(std::string_view pattern, std::string_view text) {
  size_t at = 0;                         // position in the pattern
  size_t next = 0;                       // position in the text
  size_t star = std::string_view::npos;  // position of the last '*' seen
  size_t after_star = 0;                 // the first character of the text that this '*' does not match
  while (next < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      after_star = next;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[next])) {
      ++at;
      ++next;
    } else if (star != std::string_view::npos) {
      // Lets the last '*' match one more character. Earlier ones never need to match more.
      at = star + 1;
      next = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.substr(at).find_first_not_of('*') == std::string_view::npos;
}

// Whether the id of a device matches the pattern of a query. A pattern with more than 16 wildcards matches
// nothing.
constexpr bool matches_device_id(std::string_view pattern, std::string_view id) {
  constexpr int kMaxWildcards = 16;
  int wildcards = 0;
  for (const char c : pattern) wildcards += c == '*' || c == '?';
  return wildcards <= kMaxWildcards && matches_wildcards(pattern, id);
}

}  // namespace halyard

#endif  // HALYARD_WILDCARDS_HPP_
