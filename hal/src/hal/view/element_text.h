// Values of tensors as text. Specified by run-module-cli.md, sections 3 and 4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hal/view/element_type.h"

namespace halyard::hal {

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

}  // namespace halyard::hal
