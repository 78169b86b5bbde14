// Memory of the embedder's as views: shared by memory.cpp and dlpack.cpp.
#pragma once

#include <functional>
#include <span>

#include "base/bytes.h"
#include "hal/device/host_memory.h"
#include "hal/view/buffer_view.h"
#include "handles.h"

namespace halyard::c {

// A view of a new buffer with a copy of the bytes; `data` null: zeros. INVALID_ARGUMENT: shape and size
// disagree.
Result<Ref<hal::BufferView>> copied_view(halyard_device_t device, std::span<const int64_t> shape,
                                         uint32_t element_type, const void* data, size_t size);

struct Imported {
  Ref<hal::BufferView> view;
  bool is_copy;
};
// `flags` are HALYARD_IMPORT_*. `released` (may be empty) is called once, when the bytes are not used any
// longer; never on failure.
Result<Imported> import_view(halyard_device_t device, std::span<const int64_t> shape, uint32_t element_type,
                             void* data, size_t size, uint32_t flags, std::function<void()> released);

// The buffer of a view, or the buffer that it is. INVALID_ARGUMENT.
Result<hal::Buffer*> buffer_of(halyard_object_t handle);

}  // namespace halyard::c
