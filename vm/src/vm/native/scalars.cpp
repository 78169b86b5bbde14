// Exact conversions between the kinds of numbers.
#include "vm/native/scalars.h"

#include <fmt/format.h>

#include <cmath>

#include "vm/object/value.h"

namespace halyard::vm {

namespace {

constexpr double kPastInt64 = 9223372036854775808.0;  // 2^63

bool is_integer(uint32_t kind) {
  return kind == HALYARD_VALUE_I8 || kind == HALYARD_VALUE_I16 || kind == HALYARD_VALUE_I32 ||
         kind == HALYARD_VALUE_I64;
}
bool is_float(uint32_t kind) { return kind == HALYARD_VALUE_F32 || kind == HALYARD_VALUE_F64; }

int64_t integer_of(const halyard_value_t& value) {
  switch (value.kind) {
    case HALYARD_VALUE_I8:
      return static_cast<int8_t>(value.i32);
    case HALYARD_VALUE_I16:
      return static_cast<int16_t>(value.i32);
    case HALYARD_VALUE_I32:
      return value.i32;
    default:
      return value.i64;
  }
}
double float_of(const halyard_value_t& value) {
  return value.kind == HALYARD_VALUE_F32 ? static_cast<double>(value.f32) : value.f64;
}

std::optional<int64_t> exact_integer(const halyard_value_t& value) {
  if (is_integer(value.kind)) return integer_of(value);
  const double from = float_of(value);
  if (!(from >= -kPastInt64 && from < kPastInt64) || std::trunc(from) != from) return std::nullopt;
  return static_cast<int64_t>(from);
}

std::optional<double> exact_double(const halyard_value_t& value) {
  if (is_float(value.kind)) return float_of(value);
  const int64_t number = integer_of(value);
  const double as_double = static_cast<double>(number);
  // The largest integers round to 2^63, which is not an int64_t.
  if (as_double >= kPastInt64 || static_cast<int64_t>(as_double) != number) return std::nullopt;
  return as_double;
}

}  // namespace

bool is_number(uint32_t kind) { return is_integer(kind) || is_float(kind); }

std::optional<Variant> exact_number(const halyard_value_t& value, ValueType wanted) {
  if (!is_number(value.kind)) return std::nullopt;
  if (wanted == ValueType::i32 || wanted == ValueType::i64) {
    const std::optional<int64_t> number = exact_integer(value);
    if (!number) return std::nullopt;
    if (wanted == ValueType::i64) return Variant::i64(*number);
    if (*number != static_cast<int32_t>(*number)) return std::nullopt;
    return Variant::i32(static_cast<int32_t>(*number));
  }
  const std::optional<double> number = exact_double(value);
  if (!number) return std::nullopt;
  if (wanted == ValueType::f64) return Variant::f64(*number);
  const auto narrow = static_cast<float>(*number);
  if (static_cast<double>(narrow) != *number && !std::isnan(*number)) return std::nullopt;
  return Variant::f32(narrow);
}

std::string value_text(const halyard_value_t& value) {
  const auto* const object = value.kind == HALYARD_VALUE_OBJECT ? from_handle(value.object) : nullptr;
  if (value.kind == HALYARD_VALUE_NULL || (value.kind == HALYARD_VALUE_OBJECT && !object))
    return "a null reference";
  if (object) return fmt::format("a {}", object->type()->name);
  if (is_float(value.kind))
    return fmt::format("f{} {}", value.kind == HALYARD_VALUE_F32 ? 32 : 64, float_of(value));
  switch (value.kind) {
    case HALYARD_VALUE_I8:
      return fmt::format("i8 {}", integer_of(value));
    case HALYARD_VALUE_I16:
      return fmt::format("i16 {}", integer_of(value));
    case HALYARD_VALUE_I32:
      return fmt::format("i32 {}", integer_of(value));
    case HALYARD_VALUE_I64:
      return fmt::format("i64 {}", integer_of(value));
    default:
      return fmt::format("a value of kind {}, which does not exist", value.kind);
  }
}

std::string_view type_text(ValueType type) {
  switch (type) {
    case ValueType::i32:
      return "an i32";
    case ValueType::i64:
      return "an i64";
    case ValueType::f32:
      return "an f32";
    case ValueType::f64:
      return "an f64";
    default:
      return "an object or null";
  }
}

}  // namespace halyard::vm
