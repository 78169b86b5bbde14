// The table of types.
#include "datatype.h"

#include <algorithm>

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

}  // namespace halyard::tools::serve
