// Element types: their numbers, names, sizes, and values as text. Specified by hal-types.md, "Element types",
// and run-module-cli.md, sections 3 and 4.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halyard::hal {

using ElementType = uint32_t;

enum NumericalType : uint32_t {
#define HALYARD_NUMERICAL_TYPE(name, value, ...) k##name = value,
#include "halyard/element_types.inc"
};

constexpr ElementType element_type(NumericalType type, uint32_t bits) {
  return static_cast<uint32_t>(type) << 24 | bits;
}
constexpr uint32_t numerical_type(ElementType type) { return type >> 24; }
constexpr uint32_t bit_count(ElementType type) { return type & 0xFF; }

Result<ElementType> parse_element_type(std::string_view text);  // "f32", "i1", "*8"
std::string element_type_text(ElementType type);

// The bytes of a dense view: elements x bits, rounded up to bytes. INVALID_ARGUMENT: overflow, or a negative
// dimension.
Result<uint64_t> dense_byte_count(std::span<const int64_t> shape, ElementType type);

inline constexpr size_t kMaxRank = 128;

// Parses one element and appends it to `out` in memory order. The whole text must be the element.
// INVALID_ARGUMENT: not a value of the type. The output of format_element() gives the same bytes, except for
// floats, which it rounds.
Result<> parse_element(std::string_view text, ElementType type, std::vector<uint8_t>& out);
// Formats one element for the output of tools. OUT_OF_RANGE: elements smaller than a byte.
Result<> format_element(const uint8_t* element, ElementType type, std::string& out);

// "2x3xf32=[1 2 3][4 5 6]": the contents of a view, at most `max_elements` (then "..."). OUT_OF_RANGE: fewer
// `bytes` than the shape needs, elements that are not whole bytes, or more than 128 dimensions.
// INVALID_ARGUMENT: a shape without a valid size. RESOURCE_EXHAUSTED: a shape without elements whose text
// would still be huge.
Result<std::string> format_contents(std::span<const int64_t> shape, ElementType type,
                                    std::span<const uint8_t> bytes, uint64_t max_elements);
// Like format_contents(), from the bytes of only the printed elements. The caller has checked that the other
// elements exist.
Result<std::string> format_leading(std::span<const int64_t> shape, ElementType type,
                                   std::span<const uint8_t> bytes, uint64_t max_elements);
std::string shape_text(std::span<const int64_t> shape);  // "2x3"; "" for rank 0

// The metadata and bytes of "2x3xf32=1,2,3,4,5,6" (run-module-cli.md, "Tensor text"). A single value fills
// the shape; no value gives zeros. File forms (@, +, *) are not handled; the caller removes surrounding
// blanks and quotes. INVALID_ARGUMENT: a syntax error. OUT_OF_RANGE: fewer or more elements than the shape
// has, or more than 128 dimensions. RESOURCE_EXHAUSTED: more bytes than this machine has.
struct TensorText {
  std::vector<int64_t> shape;
  ElementType type = 0;
  std::vector<uint8_t> bytes;
};
Result<TensorText> parse_tensor(std::string_view text);
// Parses only the part before '='.
struct TensorType {
  std::vector<int64_t> shape;
  ElementType type = 0;
};
Result<TensorType> parse_tensor_type(std::string_view text);

}  // namespace halyard::hal
