// Compares values one by one; for a tensor it reports the first element that differs.
#include "compare.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "common/contents.h"
#include "common/inputs.h"
#include "common/npy.h"
#include "run_flags.h"

namespace halyard::tools {

namespace {

std::string_view kind_of(const Value& value) {
  switch (value.kind()) {
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
      return value.is_null() ? "empty" : value.object().type();
    default:
      return "empty";
  }
}

// Formats like %G in C.
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

bool within(double expected, double actual, double absolute, double relative) {
  if (same_number(expected, actual)) return true;
  return std::isfinite(expected) && std::fabs(actual - expected) <= absolute + relative * std::fabs(expected);
}

bool same_scalar(const halyard_value_t& expected, const halyard_value_t& actual, const Tolerance& tolerance) {
  switch (expected.kind) {
    case HALYARD_VALUE_I64:
      return expected.i64 == actual.i64;
    case HALYARD_VALUE_F32:
      return within(static_cast<double>(expected.f32), static_cast<double>(actual.f32), tolerance.f32,
                    tolerance.relative);
    case HALYARD_VALUE_F64:
      return within(expected.f64, actual.f64, tolerance.f64, tolerance.relative);
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

// The numbers in the text of a tensor. f16 and bf16 have fewer digits than their text.
std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  for (const std::string_view element : elements_of(text))
    numbers.push_back(std::strtod(std::string(element).c_str(), nullptr));
  return numbers;
}

// One side of a comparison: the contents of a tensor, and its text. Types that are not whole bytes have no
// text.
struct Side {
  Contents contents;
  std::string text;
};

Result<Side> side_of(const Tensor& view) {
  Side side{TOOL_TRY(contents_of(view)), {}};
  side.text = side.contents.bits % 8 == 0 ? TOOL_TRY(text_of(view)) : side.contents.type_text();
  return side;
}

// An element of a type that is not whole bytes, the highest bit first: "0011".
std::string bits_of(const std::vector<uint8_t>& bytes, uint32_t bits, size_t index) {
  std::string text;
  for (uint32_t bit = bits; bit-- > 0;) {
    const size_t place = index * bits + bit;
    text += (bytes[place / 8] >> (place % 8) & 1) != 0 ? '1' : '0';
  }
  return text;
}

// Finds the first element that differs from the expected one. Both tensors have the same shape and element
// size; the element type is that of the actual tensor.
std::optional<size_t> first_difference(const Side& expected, const Side& actual, const Tolerance& tolerance) {
  const std::string& type = actual.contents.element_type;
  const std::vector<uint8_t>& wanted = expected.contents.bytes;
  const std::vector<uint8_t>& found = actual.contents.bytes;
  const size_t count = actual.contents.element_count();
  if (count == 0) return std::nullopt;
  const uint32_t bits = actual.contents.bits;
  if (bits % 8 != 0) {
    for (size_t i = 0; i < count; ++i)
      if (bits_of(wanted, bits, i) != bits_of(found, bits, i)) return i;
    return std::nullopt;
  }
  const size_t size = bits / 8;
  const bool is_small = type == "f16" || type == "bf16";
  const std::vector<double> expected_numbers = is_small ? numbers_of(expected.text) : std::vector<double>();
  const std::vector<double> actual_numbers = is_small ? numbers_of(actual.text) : std::vector<double>();
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* a = wanted.data() + i * size;
    const uint8_t* b = found.data() + i * size;
    bool same = std::memcmp(a, b, size) == 0;
    if (!same && type == "f32")
      same = within(load<float>(a), load<float>(b), tolerance.f32, tolerance.relative);
    if (!same && type == "f64")
      same = within(load<double>(a), load<double>(b), tolerance.f64, tolerance.relative);
    if (!same && is_small)
      same = within(expected_numbers[i], actual_numbers[i], type == "f16" ? tolerance.f16 : tolerance.bf16,
                    tolerance.relative);
    if (!same) return i;
  }
  return std::nullopt;
}

// numpy has no name for some element types. If the result has such a type, an array from numpy gets the type
// of the result.
Result<> give_type_of(const Contents& actual, Side& side, const Device& device) {
  if (side.contents.element_type == actual.element_type || side.contents.shape != actual.shape ||
      !npy_holds(side.contents.element_type, actual.element_type))
    return {};
  const TensorText type = TOOL_TRY(TensorText::parse_type(actual.type_text()));
  const std::vector<uint8_t>& bytes = side.contents.bytes;
  side = TOOL_TRY(side_of(TOOL_TRY(Tensor::create(device, static_cast<ElementType>(type->element_type),
                                                  actual.shape, bytes.data(), bytes.size()))));
  return {};
}

// Describes how a result differs; empty if it does not.
Result<std::string> difference(const Value& expected, bool is_array, const Value& actual,
                               const Device& device, const Tolerance& tolerance) {
  const std::string_view kind = kind_of(expected);
  if (kind != kind_of(actual))
    return fmt::format("variant types mismatch; expected {} but got {}\n", kind, kind_of(actual));
  if (expected.kind() != HALYARD_VALUE_OBJECT) {
    if (same_scalar(expected.raw(), actual.raw(), tolerance)) return std::string();
    return fmt::format("{} values differ\n  expected: {}\n  actual: {}\n", kind, scalar_text(expected.raw()),
                       scalar_text(actual.raw()));
  }
  if (kind != "hal.buffer_view")
    return fail(HALYARD_UNIMPLEMENTED, "a {} cannot be compared; pass (ignored) for it", kind);
  Side wanted = TOOL_TRY(side_of(TOOL_TRY(expected.as<Tensor>())));
  const Side found = TOOL_TRY(side_of(TOOL_TRY(actual.as<Tensor>())));
  if (is_array) TOOL_TRY(give_type_of(found.contents, wanted, device));
  std::string what;
  if (wanted.contents.type_text() != found.contents.type_text()) {
    what = fmt::format("metadata is {}; expected that the view matches {}", found.contents.type_text(),
                       wanted.contents.type_text());
  } else if (const auto at = first_difference(wanted, found, tolerance)) {
    const auto text_at = [&](const Side& side) {
      const uint32_t bits = side.contents.bits;
      return bits % 8 == 0 ? std::string(elements_of(side.text)[*at])
                           : bits_of(side.contents.bytes, bits, *at);
    };
    what = fmt::format("element at index {} ({}) does not match the expected ({})", *at, text_at(found),
                       text_at(wanted));
  } else {
    return std::string();
  }
  return fmt::format(
      "{}; expected that the view is equal to contents of a view of {}\n  expected:\n{}\n  actual:\n{}\n",
      what, wanted.contents.type_text(), wanted.text, found.text);
}

}  // namespace

Result<bool> compare_results(const std::vector<std::string>& texts, std::string_view types,
                             const std::vector<Value>& results, const Device& device,
                             const Tolerance& tolerance) {
  const Arguments expected =
      TOOL_TRY(parse_inputs(texts, types, device, flag::expected_output, Described::result));
  if (expected.values().size() < results.size()) {
    fmt::print("[FAILED] expected {} list elements but {} provided\n", expected.values().size(),
               results.size());
    return false;
  }
  bool all_match = true;
  for (size_t i = 0; i < results.size(); ++i) {
    const Arguments::Origin origin = expected.origin(i);
    if (origin == Arguments::Origin::placeholder) continue;
    const Result<std::string> what =
        difference(expected.values()[i], origin == Arguments::Origin::array, results[i], device, tolerance);
    if (!what) return fail(what.error().code, "result[{}]: {}", i, what.error().text);
    if (what->empty()) continue;
    all_match = false;
    fmt::print("[FAILED] result[{}]: {}", i, *what);
  }
  if (all_match) fmt::print("[SUCCESS] all function outputs matched their expected values.\n");
  return all_match;
}

}  // namespace halyard::tools
