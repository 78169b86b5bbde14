// All types come from element_types.inc.
#include "element.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "halyard/small_floats.hpp"

namespace halyard::tools {

namespace {

enum Numerical : uint32_t {
#define HALYARD_NUMERICAL_TYPE(name, value, ...) kNumerical##name = value,
#include "halyard/element_types.inc"
};

constexpr small_floats::Format kNoFormat = {};

struct KnownType {
  ElementKind kind;
  small_floats::Format format;
  float (*widen)(uint32_t code);
};

template <small_floats::Format format>
constexpr auto widening() -> float (*)(uint32_t) {
  if constexpr (format == kNoFormat) {
    return nullptr;
  } else {
    return &small_floats::widen<format>;
  }
}

constexpr ElementKind::Numbers numbers_of(uint32_t numerical) {
  if (numerical == kNumericalInteger || numerical == kNumericalIntegerSigned)
    return ElementKind::Numbers::signed_integer;
  return numerical >= kNumericalFloat ? ElementKind::Numbers::floating
                                      : ElementKind::Numbers::unsigned_integer;
}

using small_floats::kBf16;
using small_floats::kF16;
using small_floats::kF8E4M3FN;
using small_floats::kF8E4M3FNUZ;
using small_floats::kF8E5M2;
using small_floats::kF8E5M2FNUZ;
using small_floats::kF8E8M0FNU;

constexpr KnownType kTypes[] = {
#define HALYARD_ELEMENT_TYPE(SYMBOL, Numerical, bits, text, declared, numpy, buffer, npy, safetensors, \
                             protocol, COLLECTIVE, format)                                             \
  {{text, (bits) / 8, numbers_of(kNumerical##Numerical)}, format, widening<format>()},
#include "halyard/element_types.inc"
};

const KnownType& known(const ElementKind& kind) {
  return *std::ranges::find(kTypes, kind.name, [](const KnownType& type) { return type.kind.name; });
}

template <typename T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

uint64_t bits_of(const ElementKind& kind, const uint8_t* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, kind.size);
  return bits;
}

// Sign and magnitude to an ordered number.
__int128 ordered(uint64_t bits, uint32_t size) {
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  const auto magnitude = static_cast<__int128>(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

std::string integer_text(__int128 value) {
  return value < 0 ? std::to_string(static_cast<int64_t>(value))
                   : std::to_string(static_cast<uint64_t>(value));
}

}  // namespace

const ElementKind* element_kind(std::string_view name) {
  for (const KnownType& type : kTypes)
    if (type.kind.name == name && !name.starts_with("cf") && type.kind.size > 0 && type.kind.size <= 8)
      return &type.kind;
  return nullptr;
}

const ElementKind& byte_kind() { return *element_kind("ui8"); }

ElementValue element_value(const ElementKind& kind, const uint8_t* element) {
  const uint64_t bits = bits_of(kind, element);
  ElementValue number;
  switch (kind.numbers) {
    case ElementKind::Numbers::unsigned_integer:
      number.order = bits;
      number.value = static_cast<double>(bits);
      return number;
    case ElementKind::Numbers::signed_integer: {
      const uint32_t unused = 64 - 8 * kind.size;
      number.order = static_cast<int64_t>(bits << unused) >> unused;
      number.value = static_cast<double>(number.order);
      return number;
    }
    case ElementKind::Numbers::floating:
      break;
  }
  number.order = ordered(bits, kind.size);
  if (kind.size == 8) {
    number.value = load<double>(element);
  } else if (kind.size == 4) {
    number.value = static_cast<double>(load<float>(element));
  } else {
    const KnownType& type = known(kind);
    number.value = static_cast<double>(type.widen(static_cast<uint32_t>(bits)));
    if (!type.format.has_sign) number.order = bits;
  }
  number.is_nan = std::isnan(number.value);
  number.is_infinite = std::isinf(number.value);
  return number;
}

std::string number_text(const ElementKind& kind, const uint8_t* element) {
  const ElementValue number = element_value(kind, element);
  if (!kind.is_float()) return integer_text(number.order);
  if (number.is_nan) return fmt::format("nan ({:#x})", bits_of(kind, element));
  return kind.size == 8 ? fmt::format("{}", number.value)
                        : fmt::format("{}", static_cast<float>(number.value));
}

}  // namespace halyard::tools
