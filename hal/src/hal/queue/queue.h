// Queue work: waits, one operation, signals. Free functions, one per operation; what they keep alive they
// keep until it is done. Specified by hal-module.md, "Queue rules", hal-semantics.md, and rulings 6 to 9.
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/budget.h"
#include "base/status.h"
#include "base/work_scope.h"
#include "hal/command/command_buffer.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"
#include "hal/queue/fence.h"
#include "hal/queue/file.h"
#include "hal/queue/inline_vector.h"

namespace halyard::hal {

// Where and when. Null fences: at once; nobody is told.
struct QueuePoint {
  Device& device;
  uint64_t affinity = kAnyQueue;
  Fence* wait = nullptr;
  Fence* signal = nullptr;
  Budget* memory = nullptr;    // is charged for the work until it is done; null: nobody is
  WorkScope* scope = nullptr;  // what stops the work; null: nothing
};

// One entry of a binding table; null for an unused slot.
struct Binding {
  Buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t length = 0;  // kWholeLength: the rest
};

// Argument errors return at once: nothing is submitted, the signal fence is untouched (ruling 8). Failures of
// the wait fence and of the work fail the signal fence; devices that run in the caller also return them.
// RESOURCE_EXHAUSTED where the point's memory is spent.
Result<> queue_barrier(const QueuePoint& point);
Result<Ref<Buffer>> queue_alloca(const QueuePoint& point, uint64_t pool, uint32_t memory_type, uint32_t usage,
                                 uint64_t size, uint64_t flags);
Result<> queue_dealloca(const QueuePoint& point, Buffer& buffer, uint64_t flags);
Result<> queue_fill(const QueuePoint& point, Buffer& target, uint64_t offset, uint64_t length,
                    uint64_t pattern, uint32_t pattern_length);
Result<> queue_update(const QueuePoint& point, std::span<const uint8_t> source, Buffer& target,
                      uint64_t offset);
Result<> queue_copy(const QueuePoint& point, Buffer& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length);
Result<> queue_read(const QueuePoint& point, File& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length);
Result<> queue_write(const QueuePoint& point, Buffer& source, uint64_t source_offset, File& target,
                     uint64_t target_offset, uint64_t length);
// `table` may be empty where the recording uses no slots.
Result<> queue_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table);
Result<> queue_flush(Device& device, uint64_t affinity);

// ---- queue_execute in two parts, for who does something in between (hal/capture/capture.h)

// What a slot stands for in one execution; no allocation where it is not used.
struct SlotEntry {
  Allocation* allocation = nullptr;
  uint64_t offset = 0;  // bytes, within the allocation
  uint64_t length = 0;
};
using SlotEntries = InlineVector<SlotEntry, 16>;
// Handles of other drivers' buffers that the work uses; or that they cannot be had before its waits are
// reached, because they are for memory that an alloca has not given yet.
enum class Handles : uint8_t { ready, later };
// Checks the arguments, claims the command buffer for this execution, and appends what its slots stand for.
Result<Handles> prepare_execute(const QueuePoint& point, CommandBuffer& commands,
                                std::span<const Binding> table, SlotEntries& entries);
// Submits what was prepared, whose handles must be ready: they are once the wait is reached.
Result<> submit_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const SlotEntry> entries);

// One list of the driver that the command buffer was made into, with what was prepared.
Result<> submit_list(const QueuePoint& point, CommandBuffer& commands, halyard_driver_command_list_t list,
                     std::span<const SlotEntry> entries);

}  // namespace halyard::hal
