// Compilers append the shape of the iteration space and the element types to the names of kernels.
#include "typing.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace halyard::tools {

namespace {

std::vector<std::string_view> parts_of(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The dimensions of "32x128"; empty: something else.
std::vector<int64_t> dimensions_of(std::string_view text) {
  std::vector<int64_t> dimensions;
  for (const std::string_view part : parts_of(text, 'x')) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size() || number <= 0) return {};
    dimensions.push_back(number);
  }
  return dimensions;
}

// Of the last part of the name that has dimensions.
std::vector<int64_t> dimensions_in_name(std::string_view kernel) {
  std::vector<std::string_view> parts = parts_of(kernel, '_');
  for (size_t i = parts.size(); i-- > 0;)
    if (std::vector<int64_t> dimensions = dimensions_of(parts[i]);
        !dimensions.empty() && parts[i].contains('x'))
      return dimensions;
  // A single dimension stands before the types.
  if (parts.size() >= 2 && !types_in_name(kernel).empty()) return dimensions_of(parts[parts.size() - 2]);
  return {};
}

// Whether most values that are not 0 have exponents as they occur in networks.
bool looks_like_floats(const ElementKind& kind, std::span<const uint8_t> bytes) {
  size_t total = 0;
  size_t plausible = 0;
  for (size_t at = 0; at + kind.size <= bytes.size(); at += kind.size) {
    const ElementValue number = element_value(kind, bytes.data() + at);
    if (number.value == 0 || number.is_nan || number.is_infinite) continue;
    ++total;
    const double magnitude = std::fabs(number.value);
    if (magnitude > 0x1p-60 && magnitude < 0x1p60) ++plausible;
  }
  return total > 0 && plausible * 10 >= total * 9;
}

bool looks_like_integers(const ElementKind& kind, std::span<const uint8_t> bytes) {
  for (size_t at = 0; at + kind.size <= bytes.size(); at += kind.size)
    if (std::fabs(element_value(kind, bytes.data() + at).value) > 0x1p24) return false;
  return true;
}

}  // namespace

std::string_view text_of(Typed::Source source) {
  switch (source) {
    case Typed::Source::program:
      return "the program";
    case Typed::Source::option:
      return "--type";
    case Typed::Source::name:
      return "the name of the kernel";
    case Typed::Source::values:
      return "a guess from the values";
    case Typed::Source::none:
      break;
  }
  return "unknown, so bytes are compared";
}

std::vector<const ElementKind*> types_in_name(std::string_view kernel) {
  std::vector<const ElementKind*> types;
  for (const std::string_view part : parts_of(parts_of(kernel, '_').back(), 'x')) {
    const ElementKind* const kind = element_kind(part == "i1" ? "i8" : part);
    if (!kind) return {};
    types.push_back(kind);
  }
  return types;
}

std::vector<int64_t> shape_in_name(std::string_view kernel, uint64_t count) {
  const std::vector<int64_t> dimensions = dimensions_in_name(kernel);
  uint64_t product = 1;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (__builtin_mul_overflow(product, static_cast<uint64_t>(dimensions[i]), &product)) break;
    if (product == count) return {dimensions.begin(), dimensions.begin() + static_cast<ptrdiff_t>(i + 1)};
  }
  return {};
}

std::optional<uint64_t> count_in_name(std::string_view kernel, uint64_t count) {
  uint64_t product = 1;
  for (const int64_t dimension : dimensions_in_name(kernel)) {
    if (__builtin_mul_overflow(product, static_cast<uint64_t>(dimension), &product)) break;
    if (product >= count) return product;
  }
  return std::nullopt;
}

Typed type_of(const Step& step, const GivenTypes& given, std::span<const uint8_t> bytes) {
  using Source = Typed::Source;
  const auto fits = [&](const ElementKind* kind) { return kind && bytes.size() % kind->size == 0; };
  if (!step.type.empty()) {
    // The parts of complex numbers are compared.
    const std::string_view name = step.type == "cf64"    ? "f32"
                                  : step.type == "cf128" ? "f64"
                                                         : std::string_view(step.type);
    const ElementKind* const kind = element_kind(name);
    if (kind) return {kind, Source::program};
    return {&byte_kind(), Source::none};
  }
  if (const ElementKind* const kind = given.of(step.name); fits(kind)) return {kind, Source::option};
  if (const auto types = types_in_name(step.name); step.is_dispatch() && !types.empty() && fits(types.back()))
    return {types.back(), Source::name};
  // Small integers look like tiny floats of 16 bits, so these come last.
  using Looks = bool (*)(const ElementKind& kind, std::span<const uint8_t> bytes);
  constexpr std::pair<const char*, Looks> kGuesses[] = {{"f32", looks_like_floats},
                                                        {"f64", looks_like_floats},
                                                        {"i32", looks_like_integers},
                                                        {"f16", looks_like_floats}};
  for (const auto& [name, looks] : kGuesses)
    if (const ElementKind* const kind = element_kind(name); fits(kind) && looks(*kind, bytes))
      return {kind, Source::values};
  return {&byte_kind(), Source::none};
}

}  // namespace halyard::tools
