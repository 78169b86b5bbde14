// Operations that may concern several devices. Work on several buffers uses shared handles
// (hal/device/sharing.h); if there are none, copies go through the host (hal/queue/transfer.h).
#include "hal/queue/queue.h"

#include <utility>
#include <vector>

#include "hal/device/sharing.h"
#include "hal/queue/collective.h"
#include "hal/queue/submission.h"
#include "hal/queue/transfer.h"

namespace halyard::hal {

Result<> queue_copy(const QueuePoint& asked, Buffer& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length) {
  if (length == 0) return queue_barrier(asked);
  // The driver that owns both buffers copies.
  const QueuePoint point = is_foreign(source.device(), target) ? asked : at_owner(asked, target);
  Copy copy = {source, source_offset, target, target_offset, length};
  HALYARD_TRY(check_copy(copy));
  if (copy.length == 0) return queue_barrier(point);
  const Result<halyard_driver_memory_t> from = handle_on(point, source.allocation());
  const Result<halyard_driver_memory_t> to = handle_on(point, target.allocation());
  if (!from || !to) return transfer(point, copy);  // no memory that both devices can access
  if (!*from || !*to)
    return hold(point, 0,
                [source_offset, target_offset, length = copy.length, source = Ref<Buffer>::share(&source),
                 target = Ref<Buffer>::share(&target)](const QueuePoint& now) {
                  return queue_copy(now, *source, source_offset, *target, target_offset, length);
                });
  return submit_copy(point, copy, *from, *to);
}

namespace {

Result<> hold_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const SlotEntry> entries) {
  std::vector<Ref<Allocation>> kept;
  for (const SlotEntry& entry : entries) kept.push_back(Ref<Allocation>::share(entry.allocation));
  return hold(point, entries.size() * (sizeof(SlotEntry) + 2 * sizeof(Ref<Allocation>)),
              [commands = Ref<CommandBuffer>::share(&commands), kept = std::move(kept),
               entries = std::vector(entries.begin(), entries.end())](const QueuePoint& now) {
                return submit_execute(now, *commands, entries);
              });
}

}  // namespace

Result<> submit_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const SlotEntry> entries,
                        Reservation reservation) {
  if (!commands.collectives().empty())
    return execute_collectives(point, commands, entries, std::move(reservation));
  return submit_list(point, commands, commands.handle(), entries, std::move(reservation));
}

Result<> queue_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table) {
  SlotEntries entries;
  Reservation reservation = HALYARD_TRY(prepare_execute(point, commands, table, entries));
  const bool has_handles =
      std::ranges::all_of(entries, [](const SlotEntry& entry) { return !entry.allocation || entry.memory; });
  // Collectives handle waits themselves, and draw tickets now.
  if (has_handles || !commands.collectives().empty())
    return submit_execute(point, commands, entries, std::move(reservation));
  HALYARD_TRY(hold_execute(point, commands, entries));
  reservation.keep();
  return {};
}

Result<> queue_flush(Device& device, uint64_t affinity) {
  if (!device.table().queue_flush) return {};
  return to_result(Status::adopt(device.table().queue_flush(device.handle(), device.queues(affinity))));
}

}  // namespace halyard::hal
