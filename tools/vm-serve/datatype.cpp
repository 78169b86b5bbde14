// The table of types.
#include "datatype.h"

#include <algorithm>
#include <array>

#include "halyard/element_type.h"

namespace halyard::tools::serve {

namespace {

// The numerical types of elements.
enum : uint32_t {
#define HALYARD_NUMERICAL_TYPE(name, value, ...) k##name = value,
#include "halyard/element_types.inc"
};
constexpr uint32_t numerical(uint32_t element_type) { return element_type >> 24; }
constexpr uint32_t bits(uint32_t element_type) { return element_type & 0xFF; }
constexpr bool is_integer(uint32_t element_type) {
  return numerical(element_type) >= kInteger && numerical(element_type) <= kIntegerUnsigned;
}

constexpr NumberKind kind_of(uint32_t numerical_type) {
  switch (numerical_type) {
    case kBoolean:
      return NumberKind::boolean;
    case kInteger:
    case kIntegerSigned:
      return NumberKind::signed_integer;
    case kIntegerUnsigned:
      return NumberKind::unsigned_integer;
    default:
      return NumberKind::real;
  }
}

constexpr DataType kAll[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, numpy, buffer, npy, safetensors, \
                             protocol, ...)                                                            \
  {protocol, HALYARD_ELEMENT_##symbol, bits / 8, kind_of(k##numerical)},
#include "halyard/element_types.inc"
};
// Whether the protocol has the type.
constexpr bool has_name(const DataType& type) { return !type.name.empty(); }
constexpr auto kTypes = [] {
  std::array<DataType, std::ranges::count_if(kAll, has_name)> types = {};
  std::ranges::copy_if(kAll, types.begin(), has_name);
  return types;
}();

}  // namespace

std::span<const DataType> datatypes() { return kTypes; }

const DataType* datatype_named(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &DataType::name);
  return found == kTypes.end() ? nullptr : &*found;
}

const DataType* datatype_of(uint32_t element_type) {
  if (numerical(element_type) == kIntegerSigned) element_type = (kInteger << 24) | (element_type & 0xFFFFFF);
  const auto found = std::ranges::find(kTypes, element_type, &DataType::element_type);
  return found == kTypes.end() ? nullptr : &*found;
}

bool is_accepted(uint32_t element_type, const DataType& given) {
  const DataType* const declared = datatype_of(element_type);
  if (declared == &given) return true;
  return numerical(element_type) == kInteger && is_integer(given.element_type) &&
         bits(element_type) == bits(given.element_type);
}

}  // namespace halyard::tools::serve
