// Element types: their numbers, names and sizes. Specified by hal-types.md, "Element types", and
// run-module-cli.md, section 3.
#pragma once

#include <cstdint>
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

// The number of elements. INVALID_ARGUMENT: overflow, or a negative dimension.
Result<uint64_t> element_count(std::span<const int64_t> shape);
// The bytes of a dense view: elements x bits, rounded up to bytes. INVALID_ARGUMENT: overflow, or a negative
// dimension.
Result<uint64_t> dense_byte_count(std::span<const int64_t> shape, ElementType type);

inline constexpr size_t kMaxRank = 128;

std::string shape_text(std::span<const int64_t> shape);  // "2x3"; "" for rank 0

// The metadata of "2x3xf32". INVALID_ARGUMENT: a syntax error. OUT_OF_RANGE: more than 128 dimensions.
struct TensorType {
  std::vector<int64_t> shape;
  ElementType type = 0;
};
Result<TensorType> parse_tensor_type(std::string_view text);

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// User text for quotation in messages, shortened to a line.
std::string quoted(std::string_view text);

}  // namespace halyard::hal
