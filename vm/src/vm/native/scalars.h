// Numbers of the C ABI (halyard/value.h): exact conversions, and texts for messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "halyard/value.h"
#include "vm/object/variant.h"

namespace halyard::vm {

bool is_number(uint32_t kind);  // HALYARD_VALUE_*

// Converts the number to `wanted`, a register type; no value if the conversion is not exact or the value is
// not a number.
std::optional<Variant> exact_number(const halyard_value_t& value, ValueType wanted);

// "i64 5000000000", "a null reference", "a vm.list", "a value of kind 99, which does not exist".
std::string value_text(const halyard_value_t& value);
std::string_view type_text(ValueType type);  // "an i32"; "an object or null" for `none`

}  // namespace halyard::vm
