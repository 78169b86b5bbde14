// Parses GoogleTest's grammar.
#include "filter.h"

#include <algorithm>

#include "halyard/wildcards.hpp"

namespace halyard::tools {

namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> patterns;
  while (!text.empty()) {
    const size_t size = std::min(text.find(':'), text.size());
    if (size > 0) patterns.emplace_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return patterns;
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return matches_wildcards(pattern, name); });
}

}  // namespace

Filter::Filter(std::string_view text) {
  const size_t dash = std::min(text.find('-'), text.size());
  wanted_ = split(text.substr(0, dash));
  left_out_ = split(text.substr(std::min(dash + 1, text.size())));
}

bool Filter::takes(std::string_view name) const {
  return (wanted_.empty() || any_matches(wanted_, name)) && !any_matches(left_out_, name);
}

}  // namespace halyard::tools
