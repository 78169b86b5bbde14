// Data types of tensors in the Open Inference Protocol, and the corresponding element types of programs.
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
// The type with this name; null if the protocol has none.
const DataType* datatype_named(std::string_view name);
// The type of a program's elements in metadata; integers without a sign are shown as signed. Null if the
// protocol has none (4-bit integers, 8-bit floats, complex numbers).
const DataType* datatype_of(uint32_t element_type);
// Whether a program that declares `element_type` accepts the bytes of a tensor of type `given`. Integers
// declared without a sign accept both signed and unsigned types.
bool is_accepted(uint32_t element_type, const DataType& given);

}  // namespace halyard::tools::serve
