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

// Bytes of a dense view: elements x bits, rounded up to bytes. INVALID_ARGUMENT on overflow or a negative
// dimension.
Result<uint64_t> dense_byte_count(std::span<const int64_t> shape, ElementType type);

inline constexpr size_t kMaximumRank = 128;

// One element from text, appended to `out` in memory order. All of the text is the element.
// INVALID_ARGUMENT: it is no value of the type. What format_element() writes is read as the same bytes, but
// for floats, which it rounds.
Result<> parse_element(std::string_view text, ElementType type, std::vector<uint8_t>& out);
// One element as tools print it. OUT_OF_RANGE for elements below one byte.
Result<> format_element(const uint8_t* element, ElementType type, std::string& out);

// "2x3xf32=[1 2 3][4 5 6]": contents of a view, at most `max_elements` (the rest as "..."). OUT_OF_RANGE:
// `bytes` are fewer than the shape needs, elements that are not whole bytes, more than 128 dimensions;
// INVALID_ARGUMENT: a shape without a valid size; RESOURCE_EXHAUSTED: a shape without elements whose text
// would still be huge.
Result<std::string> format_contents(std::span<const int64_t> shape, ElementType type,
                                    std::span<const uint8_t> bytes, uint64_t max_elements);
// The same from the bytes of the printed elements alone, if the caller has checked that the others exist.
Result<std::string> format_leading(std::span<const int64_t> shape, ElementType type,
                                   std::span<const uint8_t> bytes, uint64_t max_elements);
std::string shape_text(std::span<const int64_t> shape);  // "2x3"; "" for rank 0

// The metadata and bytes of "2x3xf32=1,2,3,4,5,6" (run-module-cli.md, "Tensor text"); a single value fills
// the shape, none gives zeros. Does not handle file forms (@, +, *); the caller removes surrounding blanks
// and quotes. INVALID_ARGUMENT: a syntax error; OUT_OF_RANGE: fewer or more elements than the shape has, more
// than 128 dimensions; RESOURCE_EXHAUSTED: more bytes than this machine has.
struct TensorText {
  std::vector<int64_t> shape;
  ElementType type = 0;
  std::vector<uint8_t> bytes;
};
Result<TensorText> parse_tensor(std::string_view text);
// Only the part before '='.
struct TensorType {
  std::vector<int64_t> shape;
  ElementType type = 0;
};
Result<TensorType> parse_tensor_type(std::string_view text);

}  // namespace halyard::hal
