// Queue work: waits, one operation, signals. Each operation has one free function. The work retains the
// objects that it uses until it has completed. Specified by hal-module.md, "Queue rules", hal-semantics.md,
// and rulings 6 to 9. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/budget.h"
#include "base/inline_vector.h"
#include "base/status.h"
#include "base/work_scope.h"
#include "hal/command/command_buffer.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"
#include "hal/queue/fence.h"
#include "hal/queue/file.h"

namespace halyard::hal {

// The device and the fences of queue work. Null fences: no wait, no signal.
struct QueuePoint {
  Device& device;
  uint64_t affinity = kAnyQueue;
  Fence* wait = nullptr;
  Fence* signal = nullptr;
  Budget* memory = nullptr;    // charged until the work has completed; may be null
  WorkScope* scope = nullptr;  // can stop the work; may be null
  uint64_t owner = 0;          // for allocations, see halyard_memory_request_t
};

// An entry of a binding table; unused entries have a null buffer.
struct Binding {
  Buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t length = 0;  // kWholeLength: the rest
};

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
Result<> queue_copy(const QueuePoint& point, Buffer& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length);
Result<> queue_read(const QueuePoint& point, File& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length);
Result<> queue_write(const QueuePoint& point, Buffer& source, uint64_t source_offset, File& target,
                     uint64_t target_offset, uint64_t length);
// `table` may be empty if the recording uses no slots.
Result<> queue_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table);
Result<> queue_flush(Device& device, uint64_t affinity);

// ---- queue_execute in two steps, for callers that need to act in between (hal/capture/capture.h)

// The range bound to a slot in one execution; no allocation if the slot is not used.
struct SlotEntry {
  Allocation* allocation = nullptr;
  uint64_t offset = 0;  // bytes, within the allocation
  uint64_t length = 0;
};
using SlotEntries = InlineVector<SlotEntry, 16>;
// Whether the handles of other drivers' buffers are ready. `later`: the memory comes from an alloca that has
// not run, so the handles exist only after the work's waits are reached.
enum class Handles : uint8_t { ready, later };
// Checks the arguments, reserves an execution of the command buffer, and appends the ranges of its slots.
Result<Handles> prepare_execute(const QueuePoint& point, CommandBuffer& commands,
                                std::span<const Binding> table, SlotEntries& entries);
// Submits prepared work. The handles must be ready; they are ready once the wait is reached.
Result<> submit_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const SlotEntry> entries);

// Submits one driver list of the command buffer, with the prepared entries.
Result<> submit_list(const QueuePoint& point, CommandBuffer& commands, halyard_driver_command_list_t list,
                     std::span<const SlotEntry> entries);

}  // namespace halyard::hal
