// The contents of a tensor in host memory, for comparing and writing results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

struct Contents {
  std::string element_type;  // "f32"
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;  // of an element; elements of partial bytes are packed

  uint64_t element_count() const;
  std::string type_text() const;  // "2x2xf32"
};

// The contents of a buffer view; type_and_shape_of() omits the bytes.
Result<Contents> contents_of(const Tensor& view);
Result<Contents> type_and_shape_of(const Tensor& view);
// A view of the first elements, in one dimension. Fails if there are fewer.
Result<Tensor> first_elements_of(const Tensor& view, uint64_t count);

// "2x2xf32=[1 2][3 4]": the complete text of a view.
Result<std::string> text_of(const Tensor& view);
// The text of each element of such a text, in row-major order.
std::vector<std::string_view> elements_of(std::string_view text);

}  // namespace halyard::tools
