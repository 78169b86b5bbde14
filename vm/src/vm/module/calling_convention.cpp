// Parses calling-convention strings.
#include "vm/module/calling_convention.h"

#include <algorithm>
#include <array>

namespace halyard::vm {

namespace {

constexpr std::string_view kTypes = "iIfFr";

constexpr auto kIsType = [] {
  std::array<bool, 256> is_type = {};
  for (const char type : kTypes) is_type[static_cast<uint8_t>(type)] = true;
  return is_type;
}();
constexpr bool is_type(char c) { return kIsType[static_cast<uint8_t>(c)]; }

// Parses the items of a fragment. A fragment "v" is empty. Any other 'v' is not an item, but counts in the
// segment sizes.
Result<std::vector<ConventionItem>> parse_fragment(std::string_view text, std::string_view fragment,
                                                   bool spans_allowed) {
  std::vector<ConventionItem> items;
  if (fragment == "v") return items;
  uint32_t segment = 0;
  for (size_t i = 0; i < fragment.size(); ++i, ++segment) {
    const char type = fragment[i];
    if (type == 'v') continue;
    if (is_type(type)) {
      items.push_back({type, "", segment});
      continue;
    }
    if (type != 'C')
      return fail(
          Code::UNIMPLEMENTED,
          "calling convention '{}': unknown character '{}'; expected one of i I f F r v, or C...D for a span",
          text, type);
    if (!spans_allowed)
      return fail(Code::INVALID_ARGUMENT,
                  "calling convention '{}': a span (C...D) is only allowed in arguments", text);
    ConventionItem span{'C', "", segment};
    for (++i; i < fragment.size() && fragment[i] != 'D'; ++i) {
      if (fragment[i] == 'C')
        return fail(Code::INVALID_ARGUMENT, "calling convention '{}': a span inside a span is not allowed",
                    text);
      if (fragment[i] == 'v') continue;
      if (!is_type(fragment[i]))
        return fail(Code::UNIMPLEMENTED,
                    "calling convention '{}': unknown character '{}' in a span; expected one of i I f F r",
                    text, fragment[i]);
      span.span += fragment[i];
    }
    if (span.span.empty())
      return fail(Code::INVALID_ARGUMENT,
                  "calling convention '{}': a span without types; expected one of i I f F r", text);
    items.push_back(std::move(span));
  }
  return items;
}

}  // namespace

Result<Convention> Convention::parse(std::string_view text) {
  Convention convention;
  if (text.empty()) return convention;
  if (text[0] != '0')
    return fail(Code::UNIMPLEMENTED,
                "calling convention '{}': unknown version '{}'; expected '0' as in '0ii_i'", text, text[0]);
  const size_t separator = std::min(text.find('_'), text.size());
  convention.arguments = HALYARD_TRY(parse_fragment(text, text.substr(1, separator - 1), true));
  convention.has_span =
      std::ranges::any_of(convention.arguments, [](const ConventionItem& item) { return item.type == 'C'; });
  if (separator < text.size())
    convention.results = HALYARD_TRY(parse_fragment(text, text.substr(separator + 1), false));
  return convention;
}

std::optional<PlainTypes> plain_types(std::string_view text) {
  if (text.empty()) return PlainTypes();
  if (text[0] != '0') return {};
  PlainTypes types;
  size_t begin = 1;
  for (std::string_view* fragment : {&types.arguments, &types.results}) {
    size_t end = begin;
    while (end < text.size() && is_type(text[end])) ++end;
    *fragment = text.substr(begin, end - begin);
    if (begin == end && end < text.size() && text[end] == 'v') ++end;
    if (end == text.size()) return types;
    if (text[end] != '_') return {};
    begin = end + 1;
  }
  return {};
}

}  // namespace halyard::vm
