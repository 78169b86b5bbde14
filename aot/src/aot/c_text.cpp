#include "aot/c_text.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>

namespace halyard::aot {

namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The shortest digits that read back as the same number, with a point or an exponent.
std::string digits(std::string text) {
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string text;
  for (const char c : name) text += is_plain(c) ? c : '_';
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) text.insert(0, "m_");
  return text;
}

std::string quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      literal += '\\';
      literal += c;
    } else if (byte < 0x20 || byte >= 0x7F || c == '?') {
      literal += fmt::format("\\{:03o}", byte);
    } else {
      literal += c;
    }
  }
  return literal + '"';
}

std::string without_literals(std::string_view code) {
  std::string rest;
  bool is_inside = false;
  for (size_t i = 0; i < code.size(); ++i) {
    if (is_inside && code[i] == '\\') {
      ++i;
    } else if (code[i] == '"') {
      is_inside = !is_inside;
    } else if (!is_inside) {
      rest += code[i];
    }
  }
  return rest;
}

std::set<std::string_view> words_of(std::string_view code) {
  std::set<std::string_view> found;
  for (size_t at = 0; at < code.size();) {
    size_t end = at;
    while (end < code.size() && is_plain(code[end])) ++end;
    if (end > at) found.insert(code.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

std::string with_word(std::string_view code, std::string_view word, std::string_view text) {
  std::string all;
  for (size_t at = 0; at < code.size();) {
    size_t end = at;
    while (end < code.size() && is_plain(code[end])) ++end;
    const std::string_view found = code.substr(at, end - at);
    all += found == word ? text : found;
    if (end < code.size()) all += code[end];
    at = end + 1;
  }
  return all;
}

std::string constant_i32(uint32_t bits) {
  return bits < 1000000 ? fmt::format("{}u", bits) : fmt::format("0x{:X}u", bits);
}

std::string constant_i64(uint64_t bits) {
  return bits < 1000000 ? fmt::format("UINT64_C({})", bits) : fmt::format("UINT64_C(0x{:X})", bits);
}

std::string constant_f32(uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  if (!std::isfinite(value)) return fmt::format("vm_f32(0x{:08X}u)", bits);
  return digits(fmt::format("{}", value)) + "f";
}

std::string constant_f64(uint64_t bits) {
  const auto value = std::bit_cast<double>(bits);
  if (!std::isfinite(value)) return fmt::format("vm_f64(UINT64_C(0x{:016X}))", bits);
  return digits(fmt::format("{}", value));
}

std::string in_comment(std::string_view text) {
  std::string safe;
  for (const char c : text) safe += c == '*' || c == '/' || c == '\\' || c < ' ' || c == 0x7F ? '_' : c;
  return safe;
}

std::string compiler_checks(bool floats) {
  std::string text =
      "\n#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
      "#error \"the bytes of this program's buffers are little-endian\"\n#endif\n";
  if (floats)
    text +=
        "#if defined(__FAST_MATH__) || (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0)\n"
        "#error \"this program rounds each operation to its type: compile without -ffast-math, for i386 with "
        "-mfpmath=sse\"\n#endif\n"
        "#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n"
        "#elif defined(__GNUC__) && !defined(__STRICT_ANSI__) && (defined(__FP_FAST_FMA) || "
        "defined(__FP_FAST_FMAF))\n"
        "#error \"this program rounds products before it adds them: compile with -std=c11 or "
        "-ffp-contract=off\"\n#endif\n";
  return text;
}

}  // namespace halyard::aot
