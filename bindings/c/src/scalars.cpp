// Converts arguments of functions.
#include "scalars.h"

#include "export.h"
#include "vm/native/scalars.h"

namespace halyard::c {

Result<vm::Variant> convert_argument(const Function& function, size_t index, const halyard_value_t& value,
                                     vm::ValueType wanted) {
  const vm::Export& callee = *function.callable.function;
  const auto refuse = [&](std::string_view remark) {
    const bool is_object = value.kind == HALYARD_VALUE_OBJECT && value.object;
    return fail(Code::INVALID_ARGUMENT, "argument {}{} of '{}' must be {}, found {}{}", index,
                argument_name(callee, index), callee.name, vm::type_text(wanted),
                is_object ? kind_of(reinterpret_cast<const Object*>(value.object)) : vm::value_text(value),
                remark);
  };
  if (value.reserved != 0)
    return fail(Code::INVALID_ARGUMENT,
                "argument {}{} of '{}' has {:#x} in the field `reserved`, expected 0; clear the value first",
                index, argument_name(callee, index), callee.name, value.reserved);
  if (wanted == vm::ValueType::none) {
    if (value.kind != HALYARD_VALUE_OBJECT && value.kind != HALYARD_VALUE_NULL) return refuse("");
    return to_variant(value);
  }
  if (!vm::is_number(value.kind)) return refuse("");
  if (std::optional<vm::Variant> converted = vm::exact_number(value, wanted)) return *std::move(converted);
  return refuse(", which it cannot hold exactly");
}

}  // namespace halyard::c
