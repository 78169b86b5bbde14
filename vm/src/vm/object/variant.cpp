// Coercion of values: integers to integers, floats to floats, nothing between the two.
#include "vm/object/variant.h"

namespace halyard::vm {

namespace {

bool is_integer(ValueType type) { return type >= ValueType::i8 && type <= ValueType::i64; }

int64_t sign_extend(ValueType type, uint64_t bits) {
  switch (type) {
    case ValueType::i8:
      return static_cast<int8_t>(bits);
    case ValueType::i16:
      return static_cast<int16_t>(bits);
    case ValueType::i32:
      return static_cast<int32_t>(bits);
    default:
      return static_cast<int64_t>(bits);
  }
}

// Truncates to the width of this integer type.
uint64_t truncate(ValueType type, uint64_t bits) {
  switch (type) {
    case ValueType::i8:
      return static_cast<uint8_t>(bits);
    case ValueType::i16:
      return static_cast<uint16_t>(bits);
    case ValueType::i32:
      return static_cast<uint32_t>(bits);
    default:
      return bits;
  }
}

}  // namespace

uint64_t coerce(ValueType from, uint64_t bits, ValueType to, bool legacy_floats) {
  if (from == to) return bits;
  if (is_integer(from) && is_integer(to)) return truncate(to, static_cast<uint64_t>(sign_extend(from, bits)));
  if (legacy_floats) return 0;
  if (from == ValueType::f32 && to == ValueType::f64) {
    return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  }
  if (from == ValueType::f64 && to == ValueType::f32) {
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  }
  return 0;
}

}  // namespace halyard::vm
