// Names and sizes of element types, from tables.
#include "hal/view/element_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace halyard::hal {

namespace {

struct NamedType {
  std::string_view name;
  ElementType type;
};
constexpr NamedType kNamedTypes[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, ...) {text, element_type(k##numerical, bits)},
#include "halyard/element_types.inc"
};

// Types of any width; "": types that need a name. The first row of a numerical type gives the printed name.
struct TypePrefix {
  std::string_view prefix;
  NumericalType type;
};
constexpr TypePrefix kPrefixes[] = {
#define HALYARD_NUMERICAL_TYPE(name, value, prefix, ...) {prefix, k##name},
#include "halyard/element_types.inc"
    {"x", kOpaque},
};

bool has_any_width(ElementType type) {
  return std::ranges::any_of(kPrefixes, [&](const TypePrefix& each) {
    return each.type == numerical_type(type) && !each.prefix.empty();
  });
}

}  // namespace

// Text for quotation in messages, shortened to a line.
std::string quoted(std::string_view text) {
  constexpr size_t kMaxQuoted = 64;
  return text.size() <= kMaxQuoted ? fmt::format("'{}'", text)
                                   : fmt::format("'{}...'", text.substr(0, kMaxQuoted));
}

Result<ElementType> parse_element_type(std::string_view text) {
  for (const NamedType& named : kNamedTypes) {
    if (text == named.name) return named.type;
  }
  for (const auto& [prefix, type] : kPrefixes) {
    if (prefix.empty() || !text.starts_with(prefix)) continue;
    const std::string_view digits = text.substr(prefix.size());
    if (digits.empty() || digits.size() > 3 || !std::all_of(digits.begin(), digits.end(), is_digit)) continue;
    uint32_t bits = 0;
    for (const char digit : digits) bits = bits * 10 + static_cast<uint32_t>(digit - '0');
    if (bits >= 1 && bits <= 255) return element_type(type, bits);
  }
  std::string names;  // of types without a width
  for (const NamedType& named : kNamedTypes) {
    if (!has_any_width(named.type)) names.append(names.empty() ? "" : ", ").append(named.name);
  }
  return fail(Code::INVALID_ARGUMENT,
              "unknown element type {}; expected i, si, ui, f, bf, cf or * with a width of 1 to 255 bits "
              "(i32, f16, *8), or one of {}",
              quoted(text), names);
}

std::string element_type_text(ElementType type) {
  if (numerical_type(type) == kBoolean) return "i1";
  for (const NamedType& named : kNamedTypes) {
    if (numerical_type(type) == numerical_type(named.type) && bit_count(type) == bit_count(named.type))
      return std::string(named.name);
  }
  for (const auto& [prefix, kind] : kPrefixes) {
    if (!prefix.empty() && numerical_type(type) == kind) return fmt::format("{}{}", prefix, bit_count(type));
  }
  return fmt::format("*{}", bit_count(type));
}

Result<uint64_t> element_count(std::span<const int64_t> shape) {
  uint64_t count = 1;
  bool is_valid = true;
  bool overflow = false;
  bool empty = false;
  for (const int64_t dimension : shape) {
    is_valid &= dimension >= 0;
    empty |= dimension == 0;
    overflow |= __builtin_mul_overflow(count, static_cast<uint64_t>(dimension), &count);
  }
  if (is_valid && empty) return 0;
  if (is_valid && !overflow) return count;
  return fail(Code::INVALID_ARGUMENT,
              "shape {} has no size; expected dimensions of at least 0 whose product fits 64 bits",
              shape_text(shape));
}

Result<uint64_t> dense_byte_count(std::span<const int64_t> shape, ElementType type) {
  const uint64_t count = HALYARD_TRY(element_count(shape));
  const auto bytes = (static_cast<unsigned __int128>(count) * bit_count(type) + 7) / 8;
  if (bytes > UINT64_MAX)
    return fail(Code::INVALID_ARGUMENT,
                "shape {} of {} has no size; expected a number of bytes that fits 64 bits", shape_text(shape),
                element_type_text(type));
  return static_cast<uint64_t>(bytes);
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t dimension : shape) {
    if (!text.empty()) text += 'x';
    fmt::format_to(std::back_inserter(text), "{}", dimension);
  }
  return text;
}

Result<TensorType> parse_tensor_type(std::string_view text) {
  const size_t last = text.rfind('x');
  TensorType result;
  result.type =
      HALYARD_TRY(with_note(parse_element_type(last == std::string_view::npos ? text : text.substr(last + 1)),
                            fmt::format("in tensor type {}", quoted(text))));
  if (last == std::string_view::npos || last == 0) return result;
  std::string_view rest = text.substr(0, last);
  while (true) {
    const size_t size = std::min(rest.find('x'), rest.size());
    const std::string_view digits = rest.substr(0, size);
    uint64_t dimension = 0;
    bool valid = !digits.empty();
    for (const char c : digits) {
      valid = valid && is_digit(c) && !__builtin_mul_overflow(dimension, uint64_t{10}, &dimension) &&
              !__builtin_add_overflow(dimension, static_cast<uint64_t>(c - '0'), &dimension);
    }
    if (!valid || dimension > INT64_MAX)
      return fail(Code::INVALID_ARGUMENT,
                  "dimension {} in tensor type {} is not a size; expected decimal numbers with x between, as "
                  "in 2x3xf32",
                  quoted(digits), quoted(text));
    if (result.shape.size() == kMaxRank)
      return fail(Code::OUT_OF_RANGE, "tensor type {} has more than {} dimensions", quoted(text), kMaxRank);
    result.shape.push_back(static_cast<int64_t>(dimension));
    if (size == rest.size()) return result;
    rest.remove_prefix(size + 1);
  }
}

}  // namespace halyard::hal
