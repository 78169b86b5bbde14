// Numeric element types, and decoding of their values.
#pragma once

#include <cstdint>

#include "hal/view/element_type.h"

namespace halyard::hal {

// A float type of 16 or 8 bits: the value of a code, exact, and the code of the nearest value.
struct SmallFloat {
  float (*widen)(uint32_t code);
  uint32_t (*narrow)(double value);
};
// Null for other types.
const SmallFloat* small_float(ElementType type);

// Integers, including signless ones, of 8, 16, 32 or 64 bits. Not booleans.
bool is_integer(ElementType type);
// Floats of 64, 32, 16 or 8 bits.
bool is_float(ElementType type);

// Of an element of an integer type; signless ones count as signed.
__int128 integer_value(const uint8_t* element, ElementType type);
// Of an element of a float type; exact.
double float_value(const uint8_t* element, ElementType type);

}  // namespace halyard::hal
