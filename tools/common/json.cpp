// The layout is implemented here; nlohmann-json formats scalars and parses.
#include "common/json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace halyard::tools {

namespace {

std::string scalar_text(const Json& value) {
  return value.dump(-1, ' ', true, nlohmann::detail::error_handler_t::replace);
}

// Members of the outer `depth` levels are on separate lines.
void write(const Json& value, int depth, int indent, std::string& text) {
  if (!value.is_structured()) {
    text += scalar_text(value);
    return;
  }
  const bool has_lines = depth > 0 && !value.empty();
  const std::string line = has_lines ? "\n" + std::string(static_cast<size_t>(indent), ' ') : "";
  text += value.is_array() ? '[' : '{';
  bool is_first = true;
  for (const auto& [key, member] : value.items()) {
    if (!is_first) text += has_lines ? "," : ", ";
    is_first = false;
    if (has_lines) text += line + "  ";
    if (value.is_object()) text += scalar_text(key) + ": ";
    write(member, depth - 1, indent + 2, text);
  }
  text += line;
  text += value.is_array() ? ']' : '}';
}

template <typename T>
Json number_of(T value) {
  constexpr double kMaxExact = 9007199254740992;  // 2^53
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const auto wide = static_cast<double>(value);
  if (std::trunc(wide) == wide && std::fabs(wide) <= kMaxExact && !(wide == 0 && std::signbit(wide)))
    return static_cast<int64_t>(wide);
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);
}

// Replaces words outside of strings that are not JSON.
std::string without_unknown_words(std::string_view text) {
  std::string result;
  bool is_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_string) {
      constexpr std::string_view kWords[] = {"NaN", "-NaN", "Infinity", "-Infinity"};
      const auto* const word =
          std::ranges::find_if(kWords, [&](std::string_view it) { return text.substr(i).starts_with(it); });
      if (word != std::end(kWords)) {
        result += "null";
        i += word->size() - 1;
        continue;
      }
    }
    if (text[i] == '"') is_string = !is_string;
    result += text[i];
    if (is_string && text[i] == '\\' && i + 1 < text.size()) result += text[++i];
  }
  return result;
}

}  // namespace

std::string json_line(const Json& value) {
  std::string text;
  write(value, 0, 0, text);
  return text;
}

std::string json_document(const Json& value, int depth) {
  std::string text;
  write(value, depth, 0, text);
  return text + "\n";
}

Json json_number(float value) { return number_of(value); }
Json json_number(double value) { return number_of(value); }

Json json_rounded(double value, int places) {
  const double scale = std::pow(10, places);
  return std::round(value * scale) / scale;
}

std::string_view json_reason(const Json::exception& error) {
  std::string_view reason = error.what();  // "[json.exception.parse_error.101] parse error at line 2, ..."
  reason.remove_prefix(std::min(reason.find("] ") + 2, reason.size()));
  return reason;
}

Result<Json> parse_json(std::string_view text) {
  const std::string known = without_unknown_words(text);
  try {
    Json value;
    nlohmann::detail::json_sax_dom_parser<Json> reader(value);
    constexpr bool kWhole = false;  // text may follow the value
    Json::sax_parse(known, &reader, Json::input_format_t::json, kWhole);
    return value;
  } catch (const nlohmann::json::exception& error) {
    const auto* const at = dynamic_cast<const nlohmann::json::parse_error*>(&error);
    // A number that no double holds has no position.
    const std::string place = at ? fmt::format(" at byte {}", at->byte - 1) : "";
    return fail(HALYARD_INVALID_ARGUMENT, "invalid JSON{}: {}", place, json_reason(error));
  }
}

}  // namespace halyard::tools
