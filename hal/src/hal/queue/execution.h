// The execution of a command buffer on one device: its binding table becomes ranges of handles of the driver.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "hal/command/command_buffer.h"
#include "hal/device/buffer.h"
#include "hal/queue/queue_point.h"

namespace halyard::hal {

// An entry of a binding table; unused entries have a null buffer.
struct Binding {
  Buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t length = 0;  // kWholeLength: the rest
};

// The range bound to a slot in one execution; no allocation if the slot is not used.
struct SlotEntry {
  Allocation* allocation = nullptr;
  halyard_driver_memory_t memory = nullptr;  // see handle_on(); valid as long as the allocation
  uint64_t offset = 0;                       // bytes, within the allocation
  uint64_t length = 0;
};
using SlotEntries = boost::container::small_vector<SlotEntry, 16>;

// The handle of the allocation for the device of the point. Null: the memory comes from an alloca of another
// driver that has not run, so memory_on() has the handle only after the waits of the point are reached.
Result<halyard_driver_memory_t> handle_on(const QueuePoint& point, Allocation& allocation);

// Resolves kWholeLength. An offset past the end is left to the range check.
uint64_t rest(const Buffer& buffer, uint64_t offset, uint64_t length);

// Checks the arguments, appends the ranges of the slots, and reserves an execution of the command buffer.
Result<Reservation> prepare_execute(const QueuePoint& point, CommandBuffer& commands,
                                    std::span<const Binding> table, SlotEntries& entries);

// Submits one driver list of the command buffer, with the prepared entries. All handles must exist; they do
// once the waits of the point for which the entries were prepared are reached. Keeps the reservation if the
// driver accepts the work.
Result<> submit_list(const QueuePoint& point, CommandBuffer& commands, halyard_driver_command_list_t list,
                     std::span<const SlotEntry> entries, Reservation reservation = {});

}  // namespace halyard::hal
