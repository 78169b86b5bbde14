#include "vm/text/vmasm_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "vm/module/bytecode_module.h"

namespace halyard::vm {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

bool is_printable(char c) { return c >= 0x20 && c < 0x7F; }

struct FeatureName {
  std::string_view name;
  uint32_t bit;
};
constexpr FeatureName kFeatureNames[] = {
    {"ext_f32", kFeatureF32}, {"ext_f64", kFeatureF64}, {"yield", kFeatureYield}, {"unwind", kFeatureUnwind}};

// The language has no decimal form for denormals, and only two forms of NaN.
template <typename Float, typename Bits>
std::string float_text(Bits bits, Bits quiet_nan) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Float value = std::bit_cast<Float>(bits);
  if (std::isnan(value)) {
    if (bits == quiet_nan) return "nan";
    if (bits == (quiet_nan | kSign)) return "-nan";
  } else if (std::fpclassify(value) != FP_SUBNORMAL) {
    return fmt::format("{}", value);
  }
  return fmt::format("bits(0x{:0{}X})", bits, 2 * sizeof(Bits));
}

}  // namespace

bool is_symbol_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '.';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string hex_text(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

bool is_plain_string(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return is_printable(c) && c != '"'; });
}

std::string string_text(std::string_view bytes) {
  if (is_plain_string(bytes)) return "\"" + std::string(bytes) + "\"";
  std::string text = "e\"";
  for (const char c : bytes) {
    if (c == '\\' || c == '"') {
      text += '\\';
      text += c;
    } else if (c == '\n' || c == '\t') {
      text += c == '\n' ? "\\n" : "\\t";
    } else if (is_printable(c)) {
      text += c;
    } else {
      text += "\\x";
      text += kHexDigits[static_cast<uint8_t>(c) >> 4];
      text += kHexDigits[static_cast<uint8_t>(c) & 15];
    }
  }
  return text + "\"";
}

std::string symbol_text(std::string_view name) {
  const bool plain = !name.empty() && std::ranges::all_of(name, is_symbol_char);
  return "@" + (plain ? std::string(name) : string_text(name));
}

// '!', a name, and possibly parameters in balanced <>.
bool is_plain_type(std::string_view name) {
  if (!name.starts_with('!')) return !name.empty() && std::ranges::all_of(name, is_symbol_char);
  const size_t open = std::min(name.find('<'), name.size());
  if (open < 2 || !std::ranges::all_of(name.substr(1, open - 1), is_symbol_char)) return false;
  const std::string_view parameters = name.substr(open);
  if (parameters.find('#') != std::string_view::npos || parameters.find("//") != std::string_view::npos ||
      !is_plain_string(parameters))
    return false;
  size_t depth = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == '<') ++depth;
    if (parameters[i] == '>' && --depth == 0) return i + 1 == parameters.size();
  }
  return parameters.empty();
}

std::string f32_text(uint32_t bits) { return float_text<float>(bits, uint32_t{0x7FC00000}); }
std::string f64_text(uint64_t bits) { return float_text<double>(bits, uint64_t{0x7FF8000000000000}); }

std::string features_text(uint32_t features) {
  std::string text;
  const auto add = [&](std::string_view name) { text += (text.empty() ? "" : ", ") + std::string(name); };
  for (const FeatureName& feature : kFeatureNames) {
    if (features & feature.bit) add(feature.name);
    features &= ~feature.bit;
  }
  if (features) add(fmt::format("0x{:X}", features));
  return text.empty() ? "none" : text;
}

uint32_t feature_bit(std::string_view name) {
  const auto* found = std::ranges::find(kFeatureNames, name, &FeatureName::name);
  return found == std::end(kFeatureNames) ? 0 : found->bit;
}

}  // namespace halyard::vm
