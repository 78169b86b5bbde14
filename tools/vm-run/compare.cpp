// Compares values one by one; for tensors it reports the first element that differs.
#include "compare.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "common/inputs.h"
#include "contents.h"
#include "run_flags.h"

namespace halyard::tools {

namespace {

// Texts that match anything.
bool matches_anything(std::string_view text) { return text == "(ignored)" || text == "(null)"; }

std::string_view kind_of(const halyard_value_t& value) {
  switch (value.kind) {
    case HALYARD_VALUE_I8:
      return "i8";
    case HALYARD_VALUE_I16:
      return "i16";
    case HALYARD_VALUE_I32:
      return "i32";
    case HALYARD_VALUE_I64:
      return "i64";
    case HALYARD_VALUE_F32:
      return "f32";
    case HALYARD_VALUE_F64:
      return "f64";
    case HALYARD_VALUE_OBJECT:
      return value.object ? halyard_object_type(value.object) : "empty";
    default:
      return "empty";
  }
}

// Like %G in C.
std::string number_text(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%G", number);
  return text;
}

std::string scalar_text(const halyard_value_t& value) {
  switch (value.kind) {
    case HALYARD_VALUE_I64:
      return std::to_string(value.i64);
    case HALYARD_VALUE_F32:
      return number_text(static_cast<double>(value.f32));
    case HALYARD_VALUE_F64:
      return number_text(value.f64);
    default:
      return std::to_string(value.i32);
  }
}

bool same_number(double expected, double actual) {
  return expected == actual || (std::isnan(expected) && std::isnan(actual));
}

bool same_scalar(const halyard_value_t& expected, const halyard_value_t& actual) {
  switch (expected.kind) {
    case HALYARD_VALUE_I64:
      return expected.i64 == actual.i64;
    case HALYARD_VALUE_F32:
      return same_number(static_cast<double>(expected.f32), static_cast<double>(actual.f32));
    case HALYARD_VALUE_F64:
      return same_number(expected.f64, actual.f64);
    default:
      return expected.i32 == actual.i32;
  }
}

template <typename T>
double load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

bool within(double expected, double actual, double absolute, double relative) {
  if (same_number(expected, actual)) return true;
  return std::isfinite(expected) && std::fabs(actual - expected) <= absolute + relative * std::fabs(expected);
}

// Finds the first element that is not as expected.
std::optional<size_t> first_difference(const Contents& expected, const Contents& actual,
                                       const Tolerance& tolerance) {
  const std::string& type = expected.element_type;
  const size_t count = expected.element_count();
  if (count == 0) return std::nullopt;
  const size_t size = expected.bytes.size() / count;
  const bool is_small = type == "f16" || type == "bf16";
  // Their text has more digits than their precision.
  std::vector<std::string_view> expected_texts;
  std::vector<std::string_view> actual_texts;
  if (is_small) {
    expected_texts = expected.elements();
    actual_texts = actual.elements();
  }
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* a = expected.bytes.data() + i * size;
    const uint8_t* b = actual.bytes.data() + i * size;
    bool same = std::memcmp(a, b, size) == 0;
    if (!same && type == "f32")
      same = within(load<float>(a), load<float>(b), tolerance.f32, tolerance.relative);
    if (!same && type == "f64")
      same = within(load<double>(a), load<double>(b), tolerance.f64, tolerance.relative);
    if (!same && is_small)
      same = within(std::strtod(std::string(expected_texts[i]).c_str(), nullptr),
                    std::strtod(std::string(actual_texts[i]).c_str(), nullptr),
                    type == "f16" ? tolerance.f16 : tolerance.bf16, tolerance.relative);
    if (!same) return i;
  }
  return std::nullopt;
}

// The difference of a result; empty if there is none.
Result<std::string> difference(const halyard_value_t& expected, const halyard_value_t& actual,
                               const Tolerance& tolerance) {
  const std::string_view kind = kind_of(expected);
  if (kind != kind_of(actual))
    return fmt::format("variant types mismatch; expected {} but got {}\n", kind, kind_of(actual));
  if (expected.kind != HALYARD_VALUE_OBJECT) {
    if (same_scalar(expected, actual)) return std::string();
    return fmt::format("{} values differ\n  expected: {}\n  actual: {}\n", kind, scalar_text(expected),
                       scalar_text(actual));
  }
  if (kind != "hal.buffer_view")
    return fail(HALYARD_UNIMPLEMENTED, "a {} cannot be compared; expect (ignored) of it", kind);
  const Contents wanted = TOOL_TRY(contents_of(expected.object));
  const Contents found = TOOL_TRY(contents_of(actual.object));
  std::string what;
  if (wanted.element_type != found.element_type || wanted.shape != found.shape) {
    what = fmt::format("metadata is {}; expected that the view matches {}", found.type_text(),
                       wanted.type_text());
  } else if (const auto at = first_difference(wanted, found, tolerance)) {
    what = fmt::format("element at index {} ({}) does not match the expected ({})", *at,
                       found.elements()[*at], wanted.elements()[*at]);
  } else {
    return std::string();
  }
  return fmt::format(
      "{}; expected that the view is equal to contents of a view of {}\n  expected:\n{}\n  actual:\n{}\n",
      what, wanted.type_text(), wanted.text, found.text);
}

}  // namespace

Result<bool> compare_results(const std::vector<std::string>& texts, std::string_view types,
                             const std::vector<halyard_value_t>& results, halyard_device_t device,
                             const Tolerance& tolerance) {
  std::vector<std::string> parsed = texts;
  for (std::string& text : parsed)
    if (matches_anything(text)) text = "(null)";
  const Arguments expected =
      TOOL_TRY(parse_inputs(parsed, types, device, flag::expected_output, Described::result));
  if (expected.values().size() < results.size()) {
    fmt::print("[FAILED] expected {} list elements but {} provided\n", expected.values().size(),
               results.size());
    return false;
  }
  bool all_match = true;
  for (size_t i = 0; i < results.size(); ++i) {
    if (matches_anything(texts[i])) continue;
    const Result<std::string> what = difference(expected.values()[i], results[i], tolerance);
    if (!what) return fail(what.error().code, "result[{}]: {}", i, what.error().text);
    if (what->empty()) continue;
    all_match = false;
    fmt::print("[FAILED] result[{}]: {}", i, *what);
  }
  if (all_match) fmt::print("[SUCCESS] all function outputs matched their expected values.\n");
  return all_match;
}

}  // namespace halyard::tools
