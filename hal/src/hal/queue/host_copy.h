// Copies bytes between buffers and the host: through a mapping if the host can map the buffer, otherwise
// through a queue of its device. All work on the bytes must have completed.
#pragma once

#include <cstdint>
#include <span>

#include "base/object.h"
#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

// Copies into `target`, which `keep` owns. The copy is complete when the fence is reached; null: already
// complete. PERMISSION_DENIED: neither the host nor a copy may read the buffer.
Result<Ref<Fence>> begin_read(Buffer& source, uint64_t offset, std::span<uint8_t> target, Ref<Object> keep);
// The copy is complete when the fence is reached; null: already complete. `source` is borrowed for the call.
Result<Ref<Fence>> begin_write(std::span<const uint8_t> source, Buffer& target, uint64_t offset);

}  // namespace halyard::hal
