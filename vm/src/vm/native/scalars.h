// Numbers as C passes them (halyard/value.h): conversions that lose nothing, and their texts for messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "halyard/value.h"
#include "vm/object/variant.h"

namespace halyard::vm {

bool is_number(uint32_t kind);  // HALYARD_VALUE_*

// The number as `wanted`, a type of registers; nothing where that does not hold it exactly, or where the
// value is no number.
std::optional<Variant> exact_number(const halyard_value_t& value, ValueType wanted);

// "i64 5000000000", "a null reference", "a vm.list", "a value of kind 99, which does not exist".
std::string value_text(const halyard_value_t& value);
std::string_view type_text(ValueType type);  // "an i32"; of none "an object or null"

}  // namespace halyard::vm
