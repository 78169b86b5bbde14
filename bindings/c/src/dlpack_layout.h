// An incoming DLPack tensor, checked: what it says of its elements, before one of them is touched.
#pragma once

#include <bit>

#include "base/status.h"
#include "dlpack.h"
#include "hal/view/element_type.h"

namespace halyard::dlpack {

// DLPack's type code for programs' elements; UNIMPLEMENTED where it has none.
Result<uint8_t> code_of(hal::ElementType type);

struct Layout {
  hal::ElementType type = 0;
  std::span<const int64_t> shape;  // the tensor's
  uint64_t size = 0;               // bytes of all elements, without gaps
  uint8_t* first = nullptr;        // the element with all indices 0; null without elements
  bool is_dense = true;            // one after the other, the last dimension closest
};
// Nothing that the tensor says is trusted but that its producer owns the bytes that it names: those are
// `size` bytes, or what the strides reach, within the address space. UNIMPLEMENTED: memory or elements that
// programs lack; INVALID_ARGUMENT: everything that no tensor can be.
Result<Layout> layout_of(const Tensor& tensor);

// Copies the elements, which have strides, one after the other to `to`, which has room for `layout.size`
// bytes.
void gather(const Tensor& tensor, const Layout& layout, uint8_t* to);

}  // namespace halyard::dlpack
