// Converts elements to numbers.
#include "hal/view/element_value.h"

#include <cstring>
#include <utility>

namespace halyard::hal {

const SmallFloat* small_float(ElementType type) {
  static constexpr std::pair<ElementType, const SmallFloat*> kFormats[] = {
      {element_type(kFloatIeee, 16), &kF16},
      {element_type(kFloatBrain, 16), &kBf16},
      {element_type(kFloat8E5M2, 8), &kF8E5M2},
      {element_type(kFloat8E4M3FN, 8), &kF8E4M3FN},
      {element_type(kFloat8E5M2FNUZ, 8), &kF8E5M2FNUZ},
      {element_type(kFloat8E4M3FNUZ, 8), &kF8E4M3FNUZ},
      {element_type(kFloat8E8M0FNU, 8), &kF8E8M0FNU},
  };
  for (const auto& [known, format] : kFormats) {
    if (known == type) return format;
  }
  return nullptr;
}

bool is_integer(ElementType type) {
  const uint32_t kind = numerical_type(type);
  const uint32_t bits = bit_count(type);
  return (kind == kInteger || kind == kIntegerSigned || kind == kIntegerUnsigned) &&
         (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

bool is_float(ElementType type) {
  const uint32_t bits = bit_count(type);
  return (numerical_type(type) == kFloatIeee && (bits == 32 || bits == 64)) || small_float(type);
}

__int128 integer_value(const uint8_t* element, ElementType type) {
  const uint32_t bits = bit_count(type);
  uint64_t value = 0;
  for (size_t i = 0; i < bits / 8; ++i) value |= static_cast<uint64_t>(element[i]) << (8 * i);
  if (numerical_type(type) == kIntegerUnsigned) return value;
  const uint32_t unused = 64 - bits;
  return static_cast<int64_t>(value << unused) >> unused;
}

double float_value(const uint8_t* element, ElementType type) {
  if (const SmallFloat* format = small_float(type)) {
    const uint32_t high = bit_count(type) == 16 ? element[1] : 0;
    return decode(*format, static_cast<uint16_t>(high << 8 | element[0]));
  }
  if (bit_count(type) == 32) {
    float value = 0;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  double value = 0;
  std::memcpy(&value, element, sizeof value);
  return value;
}

}  // namespace halyard::hal
