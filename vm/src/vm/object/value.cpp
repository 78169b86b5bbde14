// Conversions, one case for each kind.
#include "vm/object/value.h"

namespace halyard::vm {

Variant to_variant(const halyard_value_t& value) {
  switch (value.kind) {
    case HALYARD_VALUE_I8:
      return Variant::value(ValueType::i8, static_cast<uint8_t>(value.i32));
    case HALYARD_VALUE_I16:
      return Variant::value(ValueType::i16, static_cast<uint16_t>(value.i32));
    case HALYARD_VALUE_I32:
      return Variant::i32(value.i32);
    case HALYARD_VALUE_I64:
      return Variant::i64(value.i64);
    case HALYARD_VALUE_F32:
      return Variant::f32(value.f32);
    case HALYARD_VALUE_F64:
      return Variant::f64(value.f64);
    case HALYARD_VALUE_OBJECT:
      return Variant::ref(Ref<Object>::share(from_handle(value.object)));
    default:
      return {};
  }
}

halyard_value_t to_value(const Variant& variant) {
  halyard_value_t value = {};
  switch (variant.type()) {
    case ValueType::i8:
      value.kind = HALYARD_VALUE_I8;
      value.i32 = static_cast<int8_t>(variant.bits());
      break;
    case ValueType::i16:
      value.kind = HALYARD_VALUE_I16;
      value.i32 = static_cast<int16_t>(variant.bits());
      break;
    case ValueType::i32:
      value.kind = HALYARD_VALUE_I32;
      value.i32 = variant.as_i32();
      break;
    case ValueType::i64:
      value.kind = HALYARD_VALUE_I64;
      value.i64 = variant.as_i64();
      break;
    case ValueType::f32:
      value.kind = HALYARD_VALUE_F32;
      value.f32 = variant.as_f32();
      break;
    case ValueType::f64:
      value.kind = HALYARD_VALUE_F64;
      value.f64 = variant.as_f64();
      break;
    case ValueType::none:
      if (Object* object = variant.object()) {
        value.kind = HALYARD_VALUE_OBJECT;
        retain(object);
        value.object = to_handle(object);
      }
      break;
  }
  return value;
}

}  // namespace halyard::vm
