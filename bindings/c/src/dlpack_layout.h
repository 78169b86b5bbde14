// Checks an incoming DLPack tensor before any element is accessed.
#pragma once

#include <bit>

#include "base/status.h"
#include "dlpack_structs.h"
#include "hal/view/element_type.h"

namespace halyard::dlpack {

// DLPack's type code for an element type of programs. UNIMPLEMENTED: there is none.
Result<uint8_t> code_of(hal::ElementType type);

struct Layout {
  hal::ElementType type = 0;
  std::span<const int64_t> shape;  // of the tensor
  uint64_t size = 0;               // bytes of all elements, without gaps
  uint8_t* first = nullptr;        // the element whose indices are all 0; null without elements
  bool is_dense = true;            // without gaps, with the last dimension contiguous
};
// Trusts only that the producer owns the described bytes: `size` bytes or, with strides, the bytes that they
// reach within the address space. UNIMPLEMENTED: memory or elements that programs do not support.
// INVALID_ARGUMENT: an invalid tensor.
Result<Layout> layout_of(const Tensor& tensor);

// Copies the elements of a tensor with strides to `to`, without gaps. `to` has room for `layout.size` bytes.
void gather(const Tensor& tensor, const Layout& layout, uint8_t* to);

}  // namespace halyard::dlpack
