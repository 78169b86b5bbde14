// Conversions of arguments that lose nothing.
#include "scalars.h"

#include <cmath>

#include "export.h"

namespace halyard::c {

namespace {

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

// "i64 5000000000"
std::string text_of(const halyard_value_t& value) {
  if (value.kind == HALYARD_VALUE_NULL) return "a null reference";
  if (value.kind == HALYARD_VALUE_OBJECT) return kind_of(reinterpret_cast<const Object*>(value.object));
  if (is_integer(value.kind)) {
    const int bits = value.kind == HALYARD_VALUE_I8    ? 8
                     : value.kind == HALYARD_VALUE_I16 ? 16
                     : value.kind == HALYARD_VALUE_I32 ? 32
                                                       : 64;
    return fmt::format("i{} {}", bits, integer_of(value));
  }
  if (is_float(value.kind))
    return fmt::format("f{} {}", value.kind == HALYARD_VALUE_F32 ? 32 : 64, float_of(value));
  return fmt::format("a value of kind {}, which does not exist", value.kind);
}

std::string_view name_of(vm::ValueType type) {
  switch (type) {
    case vm::ValueType::i32:
      return "an i32";
    case vm::ValueType::i64:
      return "an i64";
    case vm::ValueType::f32:
      return "an f32";
    case vm::ValueType::f64:
      return "an f64";
    default:
      return "an object or null";
  }
}

// Nothing where the number cannot be had exactly.
std::optional<vm::Variant> exactly(const halyard_value_t& value, vm::ValueType wanted) {
  if (wanted == vm::ValueType::i32 || wanted == vm::ValueType::i64) {
    int64_t number = 0;
    if (is_integer(value.kind)) {
      number = integer_of(value);
    } else {
      constexpr double kPast = 9223372036854775808.0;  // 2^63
      const double from = float_of(value);
      if (!(from >= -kPast && from < kPast) || std::trunc(from) != from) return std::nullopt;
      number = static_cast<int64_t>(from);
    }
    if (wanted == vm::ValueType::i64) return vm::Variant::i64(number);
    if (number != static_cast<int32_t>(number)) return std::nullopt;
    return vm::Variant::i32(static_cast<int32_t>(number));
  }
  if (is_integer(value.kind)) {
    const int64_t number = integer_of(value);
    const double as_double = static_cast<double>(number);
    // 2^63 is the double next to the largest integers, and no integer.
    if (as_double >= 9223372036854775808.0 || static_cast<int64_t>(as_double) != number) return std::nullopt;
    if (wanted == vm::ValueType::f64) return vm::Variant::f64(as_double);
    if (static_cast<double>(static_cast<float>(as_double)) != as_double) return std::nullopt;
    return vm::Variant::f32(static_cast<float>(as_double));
  }
  const double number = float_of(value);
  if (wanted == vm::ValueType::f64) return vm::Variant::f64(number);
  const auto narrow = static_cast<float>(number);
  if (static_cast<double>(narrow) != number && !std::isnan(number)) return std::nullopt;
  return vm::Variant::f32(narrow);
}

}  // namespace

Result<vm::Variant> convert_argument(const Function& function, size_t index, const halyard_value_t& value,
                                     vm::ValueType wanted) {
  const auto refuse = [&](std::string_view remark) {
    return fail(Code::INVALID_ARGUMENT, "argument {}{} of '{}' must be {}, found {}{}", index,
                argument_name(*function.callable.function, index), function.callable.function->name, name_of(wanted), text_of(value),
                remark);
  };
  const bool is_number = is_integer(value.kind) || is_float(value.kind);
  if (wanted == vm::ValueType::none) {
    if (value.kind != HALYARD_VALUE_OBJECT && value.kind != HALYARD_VALUE_NULL) return refuse("");
    return to_variant(value);
  }
  if (!is_number) return refuse("");
  if (std::optional<vm::Variant> converted = exactly(value, wanted)) return *std::move(converted);
  return refuse(", which it cannot hold exactly");
}

}  // namespace halyard::c
