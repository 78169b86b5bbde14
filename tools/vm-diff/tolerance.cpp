// Splits values at their '='.
#include "tolerance.h"

#include <charconv>
#include <cmath>

#include "diff_flags.h"
#include "halyard/wildcards.hpp"

namespace halyard::tools {

namespace {

// "f32=0.1" as type and number; the type of "0.1" is "".
std::pair<std::string, std::string_view> split(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) return {"", text};
  return {std::string(text.substr(0, equals)), text.substr(equals + 1)};
}

template <typename T>
std::optional<T> parse(std::string_view text) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<> check_type(const Flag& flag, std::string_view value, std::string_view name) {
  if (name.empty() || element_kind(name)) return {};
  return wrong_value(flag, value, "an element type such as f32, bf16 or i8");
}

}  // namespace

Result<Tolerances> Tolerances::of(const Flags& flags) {
  Tolerances tolerances;
  // General values first, because types inherit them.
  for (const bool is_general : {true, false}) {
    const auto at = [&](const std::string& type) -> Tolerance& {
      return tolerances.by_type_.try_emplace(type, type.empty() ? Tolerance() : tolerances.by_type_[""])
          .first->second;
    };
    const auto read = [&](const List& flag, double Tolerance::* to) -> Result<> {
      for (const std::string& value : flags[flag]) {
        const auto [type, text] = split(value);
        TOOL_TRY(check_type(flag, value, type));
        const std::optional<double> number = parse<double>(text);
        if (!number || !(*number >= 0) || !std::isfinite(*number))
          return wrong_value(flag, value, "a number of at least 0");
        if (type.empty() == is_general) at(type).*to = *number;
      }
      return {};
    };
    TOOL_TRY(read(flag::atol, &Tolerance::absolute));
    TOOL_TRY(read(flag::rtol, &Tolerance::relative));
    for (const std::string& value : flags[flag::ulps]) {
      const auto [type, text] = split(value);
      TOOL_TRY(check_type(flag::ulps, value, type));
      const std::optional<uint64_t> number = parse<uint64_t>(text);
      if (!number) return wrong_value(flag::ulps, value, "a whole number");
      if (type.empty() == is_general) at(type).ulps = *number;
    }
  }
  return tolerances;
}

Tolerance Tolerances::of(const ElementKind& kind) const {
  if (const auto found = by_type_.find(kind.name); found != by_type_.end()) return found->second;
  if (const auto found = by_type_.find(""); found != by_type_.end() && kind.is_float()) return found->second;
  return {};
}

Result<GivenTypes> GivenTypes::of(const Flags& flags) {
  GivenTypes given;
  for (const std::string& value : flags[flag::type]) {
    auto [pattern, name] = split(value);
    const ElementKind* const kind = element_kind(name);
    if (!kind) return wrong_value(flag::type, value, "an element type such as f32, bf16 or i8");
    given.types_.emplace_back(pattern.empty() ? "*" : pattern, kind);
  }
  return given;
}

const ElementKind* GivenTypes::of(std::string_view kernel) const {
  for (const auto& [pattern, kind] : types_)
    if (matches_wildcards(pattern, kernel)) return kind;
  return nullptr;
}

}  // namespace halyard::tools
