// A tensor's contents on the host, for comparing and writing results.
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
  uint32_t bits = 0;  // of an element; elements that are not whole bytes are packed

  uint64_t element_count() const;
  std::string type_text() const;  // "2x2xf32"
};

// The contents of a buffer view; or all but its bytes.
Result<Contents> contents_of(halyard_object_t view);
Result<Contents> type_and_shape_of(halyard_object_t view);
// A view of its first elements, in one dimension. A failure: there are not as many.
Result<Handle<halyard_object_t>> first_elements_of(halyard_object_t view, uint64_t count);

// "2x2xf32=[1 2][3 4]": the text of a view, complete.
Result<std::string> text_of(halyard_object_t view);
// The text of each element of such a text, in row-major order.
std::vector<std::string_view> elements_of(std::string_view text);

}  // namespace halyard::tools
