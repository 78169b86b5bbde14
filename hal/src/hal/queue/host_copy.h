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
// Copies into `target`, and blocks the calling thread until the copy is complete. Statuses as for begin_read,
// and those of the device's work.
Result<> read_now(Buffer& source, uint64_t offset, std::span<uint8_t> target);
// The copy is complete when the fence is reached; null: already complete. `source` is borrowed for the call.
Result<Ref<Fence>> begin_write(std::span<const uint8_t> source, Buffer& target, uint64_t offset);
// Copies `source`, and blocks the calling thread until the copy is complete.
Result<> write_now(std::span<const uint8_t> source, Buffer& target, uint64_t offset);

}  // namespace halyard::hal
