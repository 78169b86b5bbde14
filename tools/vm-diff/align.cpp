// Longest common subsequences: first of the most exact keys, then of less exact ones within the gaps.
#include "align.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace halyard::tools {

namespace {

using Keys = std::vector<uint32_t>;

// The largest table of the exact search, in cells; larger gaps are searched greedily.
constexpr size_t kMaxCells = size_t{1} << 24;

struct Interval {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};
struct Gap {
  Interval a;
  Interval b;
};

using Matches = std::vector<std::pair<size_t, size_t>>;

// Pairs each element with the next equal element, if one follows within the gap.
Matches greedy(const Keys& a, const Keys& b, const Gap& gap) {
  std::unordered_map<uint32_t, std::vector<size_t>> places;  // in b, ascending
  for (size_t j = gap.b.begin; j < gap.b.end; ++j) places[b[j]].push_back(j);
  Matches matches;
  size_t next = gap.b.begin;
  for (size_t i = gap.a.begin; i < gap.a.end; ++i) {
    const auto found = places.find(a[i]);
    if (found == places.end()) continue;
    const auto at = std::ranges::lower_bound(found->second, next);
    if (at == found->second.end()) continue;
    matches.emplace_back(i, *at);
    next = *at + 1;
  }
  return matches;
}

Matches longest_common(const Keys& a, const Keys& b, Gap gap) {
  Matches head;
  while (gap.a.size() > 0 && gap.b.size() > 0 && a[gap.a.begin] == b[gap.b.begin])
    head.emplace_back(gap.a.begin++, gap.b.begin++);
  Matches tail;
  while (gap.a.size() > 0 && gap.b.size() > 0 && a[gap.a.end - 1] == b[gap.b.end - 1])
    tail.emplace_back(--gap.a.end, --gap.b.end);
  const size_t n = gap.a.size();
  const size_t m = gap.b.size();
  if (n > 0 && m > 0 && n > kMaxCells / m) {
    const Matches middle = greedy(a, b, gap);
    head.insert(head.end(), middle.begin(), middle.end());
  } else if (n > 0 && m > 0) {
    // lengths[i][j]: of the rests that begin at i and j.
    std::vector<uint32_t> lengths((n + 1) * (m + 1));
    const auto at = [&](size_t i, size_t j) -> uint32_t& { return lengths[i * (m + 1) + j]; };
    const auto equal = [&](size_t i, size_t j) { return a[gap.a.begin + i] == b[gap.b.begin + j]; };
    for (size_t i = n; i-- > 0;)
      for (size_t j = m; j-- > 0;)
        at(i, j) = equal(i, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    for (size_t i = 0, j = 0; i < n && j < m;) {
      if (equal(i, j)) {
        head.emplace_back(gap.a.begin + i++, gap.b.begin + j++);
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        ++i;
      } else {
        ++j;
      }
    }
  }
  head.insert(head.end(), tail.rbegin(), tail.rend());
  return head;
}

// The gaps between pairs.
std::vector<Gap> gaps_between(const std::vector<Pair>& pairs, size_t a_size, size_t b_size) {
  std::vector<Gap> gaps;
  size_t a = 0;
  size_t b = 0;
  for (const Pair& pair : pairs) {
    if (pair.a > a && pair.b > b) gaps.push_back({{a, pair.a}, {b, pair.b}});
    a = pair.a + 1;
    b = pair.b + 1;
  }
  if (a < a_size && b < b_size) gaps.push_back({{a, a_size}, {b, b_size}});
  return gaps;
}

std::string sizes_text(const Step& step) {
  std::string text = step.operation == "result" ? "result" : step.is_dispatch() ? "kernel" : "other";
  for (const StepRange& range : step.ranges)
    if (!range.written.empty()) text += fmt::format(" {}", range.written.size());
  return text;
}

struct Level {
  Match match;
  std::string (*key)(const Step& step);
};
constexpr Level kLevels[] = {
    {Match::name,
     [](const Step& step) {
       return fmt::format("{} {} {} {}", step.operation, step.name, fmt::join(step.workgroups, "x"),
                          sizes_text(step));
     }},
    {Match::name, [](const Step& step) { return fmt::format("{} {}", step.operation, step.name); }},
    {Match::kind,
     [](const Step& step) { return fmt::format("{} {}", step.operation, kind_of_kernel(step.name)); }},
    {Match::size, [](const Step& step) { return sizes_text(step); }},
};

}  // namespace

std::string_view kind_of_kernel(std::string_view name) {
  constexpr std::string_view kDispatch = "_dispatch_";
  const size_t found = name.find(kDispatch);
  if (found == std::string_view::npos) return name;
  const size_t number = found + kDispatch.size();
  const size_t end = name.find_first_not_of("0123456789", number);
  if (end == number || end == std::string_view::npos || name[end] != '_') return name;
  return name.substr(end + 1);
}

Alignment align(std::span<const Step> a, std::span<const Step> b) {
  Alignment alignment;
  for (const Level& level : kLevels) {
    std::map<std::string, uint32_t> numbers;
    const auto keys_of = [&](std::span<const Step> steps) {
      Keys keys;
      for (const Step& step : steps)
        keys.push_back(
            numbers.try_emplace(level.key(step), static_cast<uint32_t>(numbers.size())).first->second);
      return keys;
    };
    const Keys left = keys_of(a);
    const Keys right = keys_of(b);
    std::vector<Pair> found;
    for (const Gap& gap : gaps_between(alignment.pairs, a.size(), b.size()))
      for (const auto& [i, j] : longest_common(left, right, gap)) found.push_back({i, j, level.match});
    alignment.pairs.insert(alignment.pairs.end(), found.begin(), found.end());
    std::ranges::sort(alignment.pairs, {}, &Pair::a);
  }
  const auto rest_of = [&](size_t size, size_t Pair::* side) {
    std::vector<bool> is_paired(size);
    for (const Pair& pair : alignment.pairs) is_paired[pair.*side] = true;
    std::vector<size_t> rest;
    for (size_t i = 0; i < size; ++i)
      if (!is_paired[i]) rest.push_back(i);
    return rest;
  };
  alignment.only_a = rest_of(a.size(), &Pair::a);
  alignment.only_b = rest_of(b.size(), &Pair::b);
  return alignment;
}

}  // namespace halyard::tools
