// Data types of tensors in the Open Inference Protocol, and the element types of programs that they stand
// for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace halyard::tools::serve {

enum class NumberKind { boolean, signed_integer, unsigned_integer, real };

struct DataType {
  std::string_view name;  // "FP32"
  uint32_t element_type;  // HALYARD_ELEMENT_*
  uint32_t size;          // bytes of an element
  NumberKind kind;
};

std::span<const DataType> datatypes();
// Null if the protocol has no such type.
const DataType* datatype_named(std::string_view name);
// The type that metadata show for elements of a program; integers without a sign are shown as signed. Null if
// the protocol has none (4-bit integers, 8-bit floats, complex numbers).
const DataType* datatype_of(uint32_t element_type);
// Whether the bytes of a tensor of type `given` are what a program takes that declares `element_type`.
// Integers that are declared without a sign may be given with either.
bool is_accepted(uint32_t element_type, const DataType& given);

}  // namespace halyard::tools::serve
