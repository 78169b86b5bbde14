// Bytes of buffers to the host, and from it, whatever memory they are in: through a mapping where the host
// can map the buffer, else through a queue of its device. All work on the bytes must be done.
#pragma once

#include <cstdint>
#include <span>

#include "base/object.h"
#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

// The bytes are in `target`, which `keep` owns, when the fence is reached; null: they are there now.
// PERMISSION_DENIED: neither the host nor a copy may read the buffer.
Result<Ref<Fence>> begin_read(Buffer& source, uint64_t offset, std::span<uint8_t> target, Ref<Object> keep);
// The bytes are in the buffer when the fence is reached; null: now. `source` is borrowed for the call.
Result<Ref<Fence>> begin_write(std::span<const uint8_t> source, Buffer& target, uint64_t offset);

}  // namespace halyard::hal
