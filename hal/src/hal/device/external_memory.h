// Imports memory that the device has not allocated: host bytes by address, memory of another process or API
// by file descriptor.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"

namespace halyard::hal {

// Creates an allocation with the driver's memory_import. `access` 0: ALL. `what` is for messages: "of host
// memory". Takes ownership of a file descriptor: closes it if the driver does not take it. `memory` (may be
// null) is charged for the objects.
Result<Ref<Allocation>> import_external(Device& device, const halyard_memory_request_t& request,
                                        const halyard_external_memory_t& external, uint32_t access,
                                        Budget* memory, std::string_view what);

// A buffer over host bytes, without a copy; the buffer retains `keep` (may be null). Type 0 means OPTIMAL,
// usage 0 means DEFAULT, access 0 means ALL; with HALYARD_MAP_PRIVATE a device's work may also write to bytes
// that programs only read. `memory` (may be null) is charged only for the objects, because the owner of the
// host bytes has charged the bytes. `file` (may be null) contains the bytes. OUT_OF_RANGE: alignment.
// UNIMPLEMENTED: the driver cannot import.
Result<Ref<Buffer>> import_host(Device& device, uint64_t affinity, uint32_t memory_type, uint32_t usage,
                                uint32_t access, void* pointer, uint64_t size, Ref<Object> keep,
                                Budget* memory = nullptr, const Bytes* file = nullptr);

// A buffer over the first `size` bytes of memory that was exported as an opaque file descriptor (OPAQUE_FD of
// Vulkan). The memory has `external_size` bytes and a memory type with these bits. The caller keeps ownership
// of `fd`. UNIMPLEMENTED: the driver imports no descriptors. INVALID_ARGUMENT: not such a descriptor.
Result<Ref<Buffer>> import_fd(Device& device, uint32_t memory_type, uint32_t usage, int32_t fd,
                              uint64_t external_size, uint64_t size);

}  // namespace halyard::hal
