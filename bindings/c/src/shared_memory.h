// Views over the embedder's memory: shared by memory.cpp and dlpack.cpp.
#pragma once

#include <algorithm>
#include <functional>
#include <span>

#include "base/bytes.h"
#include "hal/device/host_memory.h"
#include "hal/view/buffer_view.h"
#include "handles.h"

namespace halyard::c {

// A view of a new buffer with a copy of the bytes; `data` null: zeros. INVALID_ARGUMENT: shape and size do
// not match.
Result<Ref<hal::BufferView>> copied_view(halyard_device_t device, std::span<const int64_t> shape,
                                         uint32_t element_type, const void* data, size_t size);

struct Imported {
  Ref<hal::BufferView> view;
  bool is_copy;
};
// `flags` are HALYARD_IMPORT_*. `released` (may be empty) is called once, when the bytes are no longer used;
// never on failure.
Result<Imported> import_view(halyard_device_t device, std::span<const int64_t> shape, uint32_t element_type,
                             void* data, size_t size, uint32_t flags, std::function<void()> released);

// The device, or host memory if `device` is null.
Result<Ref<hal::Device>> device_or_host(halyard_device_t device);

// The memory type that programs request for buffers: device-local and, if available, host-visible.
inline constexpr uint32_t kWishes =
    HALYARD_MEMORY_OPTIMAL | HALYARD_MEMORY_DEVICE_LOCAL | HALYARD_MEMORY_HOST_VISIBLE;
inline constexpr uint32_t kUsage =
    HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_MAPPING_RANDOM;

// The buffer of a view, or the handle itself if it is a buffer. INVALID_ARGUMENT.
Result<hal::Buffer*> buffer_of(halyard_object_t handle);

}  // namespace halyard::c
