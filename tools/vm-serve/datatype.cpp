// The table of types; 16-bit floats by way of their definition.
#include "datatype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "halyard/element_type.h"

namespace halyard::tools::serve {

namespace {

constexpr DataType kTypes[] = {
    {"BOOL", HALYARD_ELEMENT_BOOL, 1, NumberKind::boolean},
    {"INT8", HALYARD_ELEMENT_I8, 1, NumberKind::signed_integer},
    {"INT16", HALYARD_ELEMENT_I16, 2, NumberKind::signed_integer},
    {"INT32", HALYARD_ELEMENT_I32, 4, NumberKind::signed_integer},
    {"INT64", HALYARD_ELEMENT_I64, 8, NumberKind::signed_integer},
    {"UINT8", HALYARD_ELEMENT_UI8, 1, NumberKind::unsigned_integer},
    {"UINT16", HALYARD_ELEMENT_UI16, 2, NumberKind::unsigned_integer},
    {"UINT32", HALYARD_ELEMENT_UI32, 4, NumberKind::unsigned_integer},
    {"UINT64", HALYARD_ELEMENT_UI64, 8, NumberKind::unsigned_integer},
    {"FP16", HALYARD_ELEMENT_F16, 2, NumberKind::real},
    {"BF16", HALYARD_ELEMENT_BF16, 2, NumberKind::real},
    {"FP32", HALYARD_ELEMENT_F32, 4, NumberKind::real},
    {"FP64", HALYARD_ELEMENT_F64, 8, NumberKind::real},
};

// The numerical types of integers: without a sign, signed, unsigned.
constexpr uint32_t kSignless = 0x10, kSigned = 0x11, kUnsigned = 0x12;
constexpr uint32_t numerical(uint32_t element_type) { return element_type >> 24; }
constexpr uint32_t bits(uint32_t element_type) { return element_type & 0xFF; }
constexpr bool is_integer(uint32_t element_type) {
  return numerical(element_type) >= kSignless && numerical(element_type) <= kUnsigned;
}

// A binary format of 16 bits: so many bits of fraction, and the exponent of its smallest normal number.
struct Format {
  int fraction;
  int least_exponent;
  uint32_t infinity;
};
constexpr Format kF16 = {10, -14, 0x7C00}, kBF16 = {7, -126, 0x7F80};

double decode(const Format& format, uint16_t bits) {
  const uint32_t fraction = bits & ((1u << format.fraction) - 1);
  const uint32_t exponent = (bits & 0x7FFFu) >> format.fraction;
  double value = 0;
  if ((bits & format.infinity) == format.infinity) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, format.least_exponent - format.fraction);
  } else {
    value = std::ldexp(fraction + (1u << format.fraction),
                       static_cast<int>(exponent) - 1 + format.least_exponent - format.fraction);
  }
  return bits & 0x8000u ? -value : value;
}

uint16_t encode(const Format& format, double value) {
  const uint32_t sign = std::signbit(value) ? 0x8000u : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | format.infinity | 1u << (format.fraction - 1));
  const double size = std::fabs(value);
  if (std::isinf(size)) return static_cast<uint16_t>(sign | format.infinity);
  if (size == 0) return static_cast<uint16_t>(sign);
  // In units of the last place; nearbyint rounds ties to even. A fraction that is rounded up to the next
  // power of two, and a subnormal number to the first normal one, carry into the exponent.
  const int exponent = std::max(std::ilogb(size), format.least_exponent);
  const auto units = static_cast<uint64_t>(std::nearbyint(std::ldexp(size, format.fraction - exponent)));
  const uint64_t encoded =
      (static_cast<uint64_t>(exponent - format.least_exponent) << format.fraction) + units;
  return static_cast<uint16_t>(sign | std::min<uint64_t>(encoded, format.infinity));
}

}  // namespace

std::span<const DataType> datatypes() { return kTypes; }

const DataType* datatype_named(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name, &DataType::name);
  return found == std::end(kTypes) ? nullptr : found;
}

const DataType* datatype_of(uint32_t element_type) {
  if (numerical(element_type) == kSigned) element_type = (kSignless << 24) | (element_type & 0xFFFFFF);
  const auto* const found = std::ranges::find(kTypes, element_type, &DataType::element_type);
  return found == std::end(kTypes) ? nullptr : found;
}

bool is_accepted(uint32_t element_type, const DataType& given) {
  const DataType* const declared = datatype_of(element_type);
  if (declared == &given) return true;
  return numerical(element_type) == kSignless && is_integer(given.element_type) &&
         bits(element_type) == bits(given.element_type);
}

double from_f16(uint16_t bits) { return decode(kF16, bits); }
double from_bf16(uint16_t bits) { return decode(kBF16, bits); }
uint16_t to_f16(double value) { return encode(kF16, value); }
uint16_t to_bf16(double value) { return encode(kBF16, value); }

}  // namespace halyard::tools::serve
