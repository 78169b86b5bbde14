// Checks a binding table, and submits the list of a command buffer with it. Memory of other drivers is used
// through shared handles (hal/device/sharing.h).
#include "hal/queue/execution.h"

#include <fmt/format.h>

#include <string>

#include "hal/device/sharing.h"
#include "hal/driver/driver_memory.h"
#include "hal/queue/submission.h"

namespace halyard::hal {

namespace {

// The access to a slot's buffer that the work needs. Devices that allow writes to constants (ruling 31) need
// no write access to constants.
uint32_t needed_access(const Device& device, const Allocation& allocation, const SlotNeeds& needs) {
  const bool lets = allocation.is_constant && &allocation.device().library() == &device.library() &&
                    (device.properties().capabilities & HALYARD_DEVICE_WRITES_CONSTANTS);
  return lets ? needs.access & ~uint32_t{kWrite} : needs.access;
}

Result<SlotEntry> checked_entry(const Device& device, const Binding& binding, const SlotNeeds& needs) {
  if (!binding.buffer) return fail(Code::INVALID_ARGUMENT, "expected a buffer, found null");
  const Buffer& buffer = *binding.buffer;
  HALYARD_TRY(buffer.check_usage(needs.usage));
  HALYARD_TRY(buffer.check_access(needed_access(device, buffer.allocation(), needs)));
  HALYARD_TRY(buffer.check_memory_type(HALYARD_MEMORY_DEVICE_VISIBLE));
  const uint64_t length = rest(buffer, binding.offset, binding.length);
  HALYARD_TRY(buffer.check_range(binding.offset, length));
  if (needs.extent > length)
    return fail(Code::OUT_OF_RANGE,
                "expected at least the {} bytes that commands use, found an entry of {} bytes at offset {}",
                needs.extent, length, binding.offset);
  const uint64_t offset = buffer.offset() + binding.offset;
  if (offset % needs.alignment != 0)
    return fail(Code::INVALID_ARGUMENT,
                "expected an offset in multiples of {} bytes, found offset {} in a buffer at byte {} of its "
                "allocation",
                needs.alignment, binding.offset, buffer.offset());
  return SlotEntry{&buffer.allocation(), nullptr, offset, length};
}

std::string slot_note(const CommandBuffer& commands, size_t slot) {
  if (slot < commands.declared_slots()) return fmt::format("binding table slot {}", slot);
  return "a buffer of another driver that was recorded";
}

// Appends the used entries of the table, then the foreign buffers that the recording refers to.
Result<> collect_entries(const CommandBuffer& commands, std::span<const Binding> table,
                         SlotEntries& entries) {
  const std::span<const SlotNeeds> slots = commands.slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].used) {
      entries.push_back({});
      continue;
    }
    if (i >= commands.declared_slots()) {
      Allocation& allocation = commands.foreign(i);
      entries.push_back({&allocation, nullptr, 0, allocation.size});
      continue;
    }
    Result<SlotEntry> entry = checked_entry(commands.device(), table[i], slots[i]);
    if (!entry) return std::unexpected(std::move(entry.error()).note(slot_note(commands, i)));
    entries.push_back(*entry);
  }
  return {};
}

}  // namespace

Result<halyard_driver_memory_t> handle_on(const QueuePoint& point, Allocation& allocation) {
  if (&allocation.device().library() == &point.device.library()) return allocation.memory;
  // If the wait has failed, that fails the signals, as with any other work.
  const bool waits = point.wait && !point.wait->query().ok();
  Result<halyard_driver_memory_t> memory = memory_on(point.device, allocation);
  if (!memory && waits && memory.error().code() == Code::FAILED_PRECONDITION && expect_sharing(allocation))
    return nullptr;
  return memory;
}

uint64_t rest(const Buffer& buffer, uint64_t offset, uint64_t length) {
  return length == kWholeLength && offset <= buffer.length() ? buffer.length() - offset : length;
}

Result<Reservation> prepare_execute(const QueuePoint& point, CommandBuffer& commands,
                                    std::span<const Binding> table, SlotEntries& entries) {
  HALYARD_TRY(commands.check_finalized());
  if (&commands.device() != &point.device)
    return fail(Code::INVALID_ARGUMENT,
                "a command buffer recorded for device '{}' was submitted to '{}'; record one for each device",
                commands.device().uri(), point.device.uri());
  const size_t declared = commands.declared_slots();
  if (table.size() < declared) {
    if (table.empty())
      return fail(Code::INVALID_ARGUMENT,
                  "the command buffer uses {} slots of a binding table, but was executed without one",
                  declared);
    return fail(Code::OUT_OF_RANGE,
                "the command buffer uses {} slots of a binding table, but the table has {} entries", declared,
                table.size());
  }
  if ((commands.mode() & kAllowInline) && point.wait && !point.wait->timepoints().empty())
    return fail(Code::INVALID_ARGUMENT,
                "expected no wait for a command buffer with ALLOW_INLINE_EXECUTION, found one; record it "
                "without that "
                "mode");

  HALYARD_TRY(collect_entries(commands, table, entries));
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].allocation) continue;
    Result<halyard_driver_memory_t> memory = handle_on(point, *entries[i].allocation);
    if (!memory) return std::unexpected(std::move(memory.error()).note(slot_note(commands, i)));
    entries[i].memory = *memory;
  }
  return commands.begin_execution();
}

Result<> submit_list(const QueuePoint& point, CommandBuffer& commands, halyard_driver_command_list_t list,
                     std::span<const SlotEntry> entries, Reservation reservation) {
  auto work = HALYARD_TRY(make_work(point, entries.size() * driver_memory::kBinding));
  work->reservation = std::move(reservation);
  work->use(commands);
  work->commands = &commands;
  boost::container::small_vector<halyard_binding_t, 16> bindings;
  for (const SlotEntry& entry : entries) {
    if (!entry.allocation) {
      bindings.push_back({});
      continue;
    }
    halyard_driver_memory_t memory = entry.memory;
    if (!memory) memory = HALYARD_TRY(memory_on(point.device, *entry.allocation));
    bindings.push_back({memory, entry.offset, entry.length});
    work->use(*entry.allocation);
  }
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_EXECUTE);
  operation.execute = {list, bindings.data(), bindings.size()};
  return submit(std::move(work), point, operation);
}

}  // namespace halyard::hal
