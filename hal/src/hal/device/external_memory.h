// Memory that somebody else has allocated, known to a device: host bytes by their address, memory of another
// process or API by a file descriptor.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"

namespace halyard::hal {

// What the driver's memory_import makes of it. `access` 0: ALL. `what` is for messages: "of host memory". A
// descriptor is taken over: closed where the driver does not take it. `memory` (may be null) is charged for
// the objects.
Result<Ref<Allocation>> import_external(Device& device, const halyard_memory_request_t& request,
                                        const halyard_external_memory_t& external, uint32_t access,
                                        Budget* memory, std::string_view what);

// A buffer over the first `size` bytes of memory that was exported as an opaque file descriptor (OPAQUE_FD of
// Vulkan), with `external_size` bytes in all and a memory type that has these bits. `fd` stays the caller's.
// UNIMPLEMENTED: the driver imports none; INVALID_ARGUMENT: it is no such descriptor.
Result<Ref<Buffer>> import_fd(Device& device, uint32_t memory_type, uint32_t usage, int32_t fd,
                              uint64_t external_size, uint64_t size);

}  // namespace halyard::hal
