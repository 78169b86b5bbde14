// Parses declarations of functions.
#include "declaration.h"

#include <algorithm>

#include "hal/view/element_type.h"

namespace halyard::c {

namespace {

bool is_blank(char character) { return character == ' ' || character == '\t'; }
bool is_digit(char character) { return character >= '0' && character <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// The position, from `at` on, of the first of these characters outside of brackets and strings; the size of
// the text if there is none.
size_t find_outside(std::string_view text, std::string_view characters, size_t at = 0) {
  int depth = 0;
  bool is_quoted = false;
  for (; at < text.size(); ++at) {
    const char character = text[at];
    if (character == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (depth == 0 && characters.contains(character)) return at;
    const bool is_arrow = character == '>' && at > 0 && text[at - 1] == '-';
    if (std::string_view("(<{[").contains(character)) ++depth;
    if (std::string_view(")>}]").contains(character) && !is_arrow) --depth;
    if (depth < 0) return text.size();
  }
  return at;
}

// "%x: f32 {attribute}"; the name may be missing.
Declared parse_item(std::string_view text) {
  Declared item;
  text = trimmed(text);
  if (text.starts_with('%')) {
    const size_t colon = std::min(text.find(':'), text.size());
    item.name = trimmed(text.substr(1, colon - 1));
    text = trimmed(text.substr(std::min(colon + 1, text.size())));
  }
  item.type = trimmed(text.substr(0, find_outside(text, "{")));
  return item;
}

std::vector<Declared> parse_items(std::string_view text) {
  std::vector<Declared> items;
  while (!trimmed(text).empty()) {
    const size_t comma = find_outside(text, ",");
    items.push_back(parse_item(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

}  // namespace

std::optional<Declaration> parse_declaration(std::string_view text) {
  const size_t function = text.find("func @");
  if (function == std::string_view::npos) return std::nullopt;
  text.remove_prefix(std::min(text.find('(', function), text.size()));
  if (text.empty()) return std::nullopt;
  text.remove_prefix(1);
  const size_t end = find_outside(text, ")");
  if (end == text.size()) return std::nullopt;
  Declaration declaration = {parse_items(text.substr(0, end)), {}};
  text = trimmed(text.substr(end + 1));
  if (!text.starts_with("->")) return declaration;
  text = trimmed(text.substr(2));
  if (text.starts_with('(')) {
    text.remove_prefix(1);
    text = text.substr(0, find_outside(text, ")"));
  }
  declaration.results = parse_items(text);
  return declaration;
}

uint32_t declared_element(std::string_view text) {
  struct Declared {
    std::string_view text;
    uint32_t type;
  };
  static constexpr Declared kDeclared[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, ...) \
  {declared, hal::element_type(hal::k##numerical, bits)},
#include "halyard/element_types.inc"
      {"f128", hal::element_type(hal::kFloatIeee, 128)},
  };
  for (const Declared& each : kDeclared)
    if (!text.empty() && each.text == text) return each.type;
  // Integers have any width.
  const std::string_view prefix = text.substr(0, text.find_first_of("0123456789"));
  const bool is_integer = prefix == "i" || prefix == "si" || prefix == "ui";
  return is_integer ? hal::parse_element_type(text).value_or(0) : 0;
}

std::optional<DeclaredTensor> declared_tensor(std::string_view type) {
  constexpr std::string_view kTensor = "tensor<";
  if (!type.starts_with(kTensor)) return std::nullopt;
  std::string_view inside = type.substr(kTensor.size());
  inside = inside.substr(0, find_outside(inside, ",>"));
  DeclaredTensor tensor;
  if (inside.starts_with("*x")) {
    tensor.is_ranked = false;
    inside.remove_prefix(2);
  }
  while (tensor.is_ranked && !inside.empty() && (inside.front() == '?' || is_digit(inside.front()))) {
    int64_t size = -1;
    size_t at = 1;
    if (is_digit(inside.front())) {
      bool overflows = false;
      size = inside.front() - '0';
      for (; at < inside.size() && is_digit(inside[at]); ++at)
        overflows |= __builtin_mul_overflow(size, int64_t{10}, &size) ||
                     __builtin_add_overflow(size, int64_t{inside[at] - '0'}, &size);
      if (overflows) return std::nullopt;
    }
    if (at == inside.size() || inside[at] != 'x') return std::nullopt;
    tensor.shape.push_back(size);
    inside.remove_prefix(at + 1);
  }
  if (tensor.shape.size() > hal::kMaxRank) return std::nullopt;
  tensor.element_type = declared_element(trimmed(inside));
  return tensor;
}

}  // namespace halyard::c
