// Operations on the buffers of one device. The work is queued on the device of the buffer, even if the point
// names another device. A driver without an operation gets a recorded command instead.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/queue/file.h"
#include "hal/queue/queue_point.h"

namespace halyard::hal {

// Argument errors are returned at once: nothing is submitted, and the signal fence is unchanged (ruling 8).
// Failures of the wait fence and of the work fail the signal fence; devices that run in the caller also
// return them. RESOURCE_EXHAUSTED: the budget of the point is used up.
Result<> queue_barrier(const QueuePoint& point);
Result<Ref<Buffer>> queue_alloca(const QueuePoint& point, uint64_t pool, uint32_t memory_type, uint32_t usage,
                                 uint64_t size, uint64_t flags);
Result<> queue_dealloca(const QueuePoint& point, Buffer& buffer, uint64_t flags);
Result<> queue_fill(const QueuePoint& point, Buffer& target, uint64_t offset, uint64_t length,
                    uint64_t pattern, uint32_t pattern_length);
Result<> queue_update(const QueuePoint& point, std::span<const uint8_t> source, Buffer& target,
                      uint64_t offset);
Result<> queue_read(const QueuePoint& point, File& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length);
Result<> queue_write(const QueuePoint& point, Buffer& source, uint64_t source_offset, File& target,
                     uint64_t target_offset, uint64_t length);

struct Copy {
  Buffer& source;
  uint64_t source_offset = 0;
  Buffer& target;
  uint64_t target_offset = 0;
  uint64_t length = 0;  // kWholeLength: the rest of the source
};
// Resolves kWholeLength; checks both ranges.
Result<> check_copy(Copy& copy);
// Submits a checked copy to the device of the point, which has the handles `from` and `to` for the memory.
Result<> submit_copy(const QueuePoint& point, const Copy& copy, halyard_driver_memory_t from,
                     halyard_driver_memory_t to);
// Checks and submits a copy of at least one byte between buffers of the point's device.
Result<> copy_on_device(const QueuePoint& point, Copy copy);

// The queue point for work on this buffer alone.
QueuePoint at_owner(const QueuePoint& point, const Buffer& buffer);

}  // namespace halyard::hal
