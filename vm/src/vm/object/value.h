// Conversion between C values (halyard/value.h) and VM values, and between C handles and objects.
#pragma once

#include <cstdint>

#include "base/object.h"
#include "halyard/value.h"
#include "vm/object/variant.h"

namespace halyard::vm {

// A handle is the address of the object's header.
inline halyard_object_t to_handle(Object* object) { return reinterpret_cast<halyard_object_t>(object); }
inline Object* from_handle(halyard_object_t handle) { return reinterpret_cast<Object*>(handle); }

// References are shared on the way in and transferred on the way out.
Variant to_variant(const halyard_value_t& value);
halyard_value_t to_value(const Variant& variant);

// The HALYARD_VALUE_* of a type in a calling convention.
inline uint32_t value_kind(char type) {
  switch (type) {
    case 'i':
      return HALYARD_VALUE_I32;
    case 'I':
      return HALYARD_VALUE_I64;
    case 'f':
      return HALYARD_VALUE_F32;
    case 'F':
      return HALYARD_VALUE_F64;
    default:
      return HALYARD_VALUE_OBJECT;
  }
}

// The same as a register type; `none` for a ref.
inline ValueType value_type(char type) {
  switch (type) {
    case 'i':
      return ValueType::i32;
    case 'I':
      return ValueType::i64;
    case 'f':
      return ValueType::f32;
    case 'F':
      return ValueType::f64;
    default:
      return ValueType::none;
  }
}

}  // namespace halyard::vm
