// Queue work: waits, one operation, signals. Each operation has one free function; those of one device are in
// operations.h. The work retains the objects that it uses until it has completed. Specified by hal-module.md,
// "Queue rules", hal-semantics.md, and rulings 6 to 9. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "hal/command/command_buffer.h"
#include "hal/queue/execution.h"
#include "hal/queue/operations.h"

namespace halyard::hal {

Result<> queue_copy(const QueuePoint& point, Buffer& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length);
// `table` may be empty if the recording uses no slots.
Result<> queue_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table);
Result<> queue_flush(Device& device, uint64_t affinity);

// Submits prepared work (prepare_execute()). The waits for which it was prepared must be reached, unless all
// entries have handles. Keeps the reservation if the work is accepted.
Result<> submit_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const SlotEntry> entries,
                        Reservation reservation = {});

}  // namespace halyard::hal
