#include "emit/kernel_objects.h"

#include <cstddef>

namespace halyard::jit {

const halyard_jit_layout_t& kernel_object_layout() {
  static const halyard_jit_layout_t layout = {
      .object_type = offsetof(KernelBuffer, type),
      .buffer_data = offsetof(KernelBuffer, data),
      .buffer_length = offsetof(KernelBuffer, length),
      .buffer_mutable_length = offsetof(KernelBuffer, mutable_length),
      .buffer_written = offsetof(KernelBuffer, written),
      .list_element = offsetof(KernelList, element),
      .list_size = offsetof(KernelList, size),
      .list_data = offsetof(KernelList, buffers),
      .frame_bytes = 0,
      .frame_code = 0,
      .frame_instance = 0,
      .frame_call = 0,
      .frame_caller_bytes = 0,
      .code_words = 0,
  };
  static_assert(offsetof(KernelBuffer, type) == offsetof(KernelList, type));
  return layout;
}

}  // namespace halyard::jit
