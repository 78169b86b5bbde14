// The table of cases, and searches in it.
#include "cases.h"

#include <algorithm>

namespace halyard::cts {

namespace {

constexpr Case kCases[] = {
#define HAL_CTS_CASE(group, name, scope, tags, rules, ...) \
  {#group "." #name, Scope::scope, #group " " tags, rules, "" __VA_ARGS__, group##_##name},
#include "cases.inc"
#undef HAL_CTS_CASE
};

template <typename Use>
void each_word(std::string_view text, Use use) {
  while (!text.empty()) {
    const size_t size = std::min(text.find(' '), text.size());
    if (size > 0) use(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
}

}  // namespace

std::span<const Case> all_cases() { return kCases; }

bool Case::has_tag(std::string_view tag) const {
  bool found = false;
  each_word(tags, [&](std::string_view word) { found = found || word == tag; });
  return found;
}

std::vector<std::string> all_tags() {
  std::vector<std::string> tags;
  for (const Case& it : kCases)
    each_word(it.tags, [&](std::string_view word) {
      if (std::ranges::find(tags, word) == tags.end()) tags.emplace_back(word);
    });
  return tags;
}

}  // namespace halyard::cts
