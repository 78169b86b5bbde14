// The objects that a kernel's entry function makes for compiled code and for microkernels.
#pragma once

#include <cstdint>

#include "vm/decode/jit_abi.h"

namespace halyard::jit {

struct KernelBuffer {
  const void* type;
  void* data;
  uint64_t length;
  uint64_t mutable_length;
  uint64_t written;
};
struct KernelList {
  const void* type;
  void* buffers;
  uint32_t size;
  uint32_t element;
};

// Their layout, as compiled code reads them.
const halyard_jit_layout_t& kernel_object_layout();

}  // namespace halyard::jit
