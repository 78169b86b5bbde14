#include "text/suggest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <vector>

namespace halyard {

namespace {

constexpr size_t kMaxWord = 64;  // because the comparison takes quadratic time

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// The number of insertions, removals, changes, and swaps of adjacent characters that turn `a` into `b`,
// ignoring case.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = above[j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kMaxWord) return "";
  size_t nearest = std::max<size_t>(1, word.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() + nearest <= word.size() ||
        word.size() + nearest <= candidate.size())
      continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance >= nearest) continue;
    nearest = distance;
    best = candidate;
  }
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

}  // namespace halyard
