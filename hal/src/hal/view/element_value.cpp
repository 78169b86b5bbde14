// Converts elements to numbers.
#include "hal/view/element_value.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "halyard/small_floats.hpp"

namespace halyard::hal {

namespace {

constexpr small_floats::Format kNoFormat = {};

template <small_floats::Format format>
constexpr SmallFloat functions_of() {
  if constexpr (format == kNoFormat) {
    return {};
  } else {
    return {small_floats::widen<format>, [](double value) { return small_floats::narrow<format>(value); }};
  }
}

struct TypeFormat {
  ElementType type;
  SmallFloat functions;
  bool has_format;  // g++ with UBSan does not compare functions at compile time
};
using namespace small_floats;  // the formats, by the names of the table
constexpr TypeFormat kAll[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, numpy, buffer, npy, safetensors, \
                             protocol, collective, format)                                             \
  {element_type(k##numerical, bits), functions_of<format>(), format != kNoFormat},
#include "halyard/element_types.inc"
};
// Only rows with a format are kept, because every element is looked up.
constexpr auto kFormats = [] {
  std::array<TypeFormat, std::ranges::count_if(kAll, &TypeFormat::has_format)> formats = {};
  std::ranges::copy_if(kAll, formats.begin(), &TypeFormat::has_format);
  return formats;
}();

}  // namespace

const SmallFloat* small_float(ElementType type) {
  for (const TypeFormat& each : kFormats) {
    if (each.type == type) return &each.functions;
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
    return format->widen(high << 8 | element[0]);
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
