// Checks the arguments of operations, and submits them.
#include "hal/queue/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "hal/command/command_buffer.h"
#include "hal/device/sharing.h"
#include "hal/queue/execution.h"
#include "hal/queue/fence.h"
#include "hal/queue/submission.h"

namespace halyard::hal {

namespace {

// For drivers without the operation: submits a recorded command instead.
template <typename Record>
Result<> submit_recorded(const QueuePoint& point, Record record) {
  Ref<CommandBuffer> commands = HALYARD_TRY(CommandBuffer::create(
      Ref<Device>::share(&point.device), kOneShot, kTransfer, point.affinity, 0, point.memory));
  HALYARD_TRY(record(*commands));
  HALYARD_TRY(commands->finalize());
  SlotEntries entries;
  Reservation reservation = HALYARD_TRY(prepare_execute(point, *commands, {}, entries));
  return submit_list(point, *commands, commands->handle(), entries, std::move(reservation));
}

// The requirements of a recorded transfer (ruling 7).
Result<> check_transfer(const Buffer& buffer, uint64_t offset, uint64_t length, uint32_t usage,
                        uint32_t access) {
  HALYARD_TRY(buffer.check_usage(usage));
  HALYARD_TRY(buffer.check_access(access));
  HALYARD_TRY(buffer.check_memory_type(HALYARD_MEMORY_DEVICE_VISIBLE));
  return buffer.check_range(offset, length);
}

Result<> check_source(const Buffer& buffer, uint64_t offset, uint64_t length) {
  return check_transfer(buffer, offset, length, HALYARD_USAGE_TRANSFER_SOURCE, kRead);
}

Result<> check_target(const Buffer& buffer, uint64_t offset, uint64_t length) {
  return check_transfer(buffer, offset, length, HALYARD_USAGE_TRANSFER_TARGET, kWrite);
}

Result<> check_file(const File& file, uint64_t offset, uint64_t length, const char* verb) {
  if (offset > file.length() || length > file.length() - offset)
    return fail(Code::OUT_OF_RANGE, "cannot {} {} bytes at offset {} of a file of {} bytes", verb, length,
                offset, file.length());
  return {};
}

Result<> check_file_access(const File& file, uint32_t access) {
  if ((file.access() & access) == access) return {};
  return fail(Code::PERMISSION_DENIED, "expected a file that allows {}, found one that allows {}",
              access_text(access), access_text(file.access()));
}

// The range as a handle of the buffer's own driver.
halyard_range_t range_of(const Buffer& buffer, uint64_t offset, uint64_t length) {
  return {buffer.allocation().memory, 0, 0, buffer.offset() + offset, length};
}

// The target is the range of bytes that `work` retains.
Result<> submit_update(OwnWork work, const QueuePoint& point, const void* source, Buffer& target,
                       uint64_t offset, uint64_t length) {
  work->use(target.allocation());
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_UPDATE);
  operation.update = {source, range_of(target, offset, length)};
  return submit(std::move(work), point, operation);
}

// The place of an alloca or a dealloca among the work of its device.
QueuedMemory queued_at(const QueuePoint& point) {
  QueuedMemory queued;
  if (point.wait)
    for (const Timepoint& it : point.wait->timepoints())
      queued.waits.emplace_back(it.semaphore.get(), it.value);
  std::vector<Timepoint> own;  // those that the device signals
  if (point.signal) {
    for (const Timepoint& it : point.signal->timepoints()) {
      queued.signals.emplace_back(it.semaphore.get(), it.value);
      if (is_of_driver(it, point.device)) own.push_back(it);
    }
  }
  if (!own.empty())
    queued.is_done = [own = std::move(own)] {
      return std::ranges::all_of(own, [](const Timepoint& it) {
        const Result<uint64_t> reached = it.semaphore->query();
        return reached && *reached >= it.value;
      });
    };
  return queued;
}

void log_memory(InFlight& work, Allocation& allocation, const QueuePoint& point, bool is_dealloca) {
  if (!allocation.device().memory_log()) [[likely]]
    return;
  allocation.log_queued(is_dealloca, queued_at(point));
  (is_dealloca ? work.deallocated : work.allocated) = &allocation;
}

}  // namespace

QueuePoint at_owner(const QueuePoint& point, const Buffer& buffer) {
  if (!is_foreign(point.device, buffer)) return point;
  return {buffer.device(), kAnyQueue, point.wait, point.signal, point.memory, point.scope};
}

Result<> queue_barrier(const QueuePoint& point) {
  return submit(HALYARD_TRY(make_work(point)), point, operation_of(HALYARD_OPERATION_BARRIER));
}

Result<Ref<Buffer>> queue_alloca(const QueuePoint& point, uint64_t pool, uint32_t memory_type, uint32_t usage,
                                 uint64_t size, uint64_t flags) {
  Device& device = point.device;
  const halyard_device_properties_t& properties = device.properties();
  if (pool != 0)
    return fail(Code::UNIMPLEMENTED, "expected pool 0, the default and only one, found pool {}", pool);
  if (!(properties.capabilities & HALYARD_DEVICE_QUEUE_ALLOCA)) {
    Ref<Buffer> buffer = HALYARD_TRY(
        Buffer::allocate(device, point.affinity, memory_type, usage, size, point.memory, point.owner));
    buffer->allocation().indeterminate_lifetime = (flags & kAllocaIndeterminateLifetime) != 0;
    HALYARD_TRY(queue_barrier(point));
    return buffer;
  }
  if (size > properties.maximum_allocation)
    return fail(Code::RESOURCE_EXHAUSTED,
                "device '{}' allocates at most {} bytes at once; while allocating {} bytes", device.uri(),
                properties.maximum_allocation, size);

  Ref<Allocation> allocation = make_pooled<Allocation>(device, Ref<Device>::share(&device));
  HALYARD_TRY(allocation->charge_to(point.memory, size));
  allocation->size = size;
  allocation->origin_affinity = point.affinity;
  allocation->queue_ordered = true;
  allocation->indeterminate_lifetime = (flags & kAllocaIndeterminateLifetime) != 0;
  halyard_memory_info_t info = {};
  info.struct_size = sizeof(info);
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_ALLOCA);
  halyard_memory_request_t request = device.memory_request(point.affinity, memory_type, usage, size);
  request.owner = point.owner;
  operation.alloca_.request = &request;
  operation.alloca_.memory = &allocation->memory;
  operation.alloca_.info = &info;
  auto work = HALYARD_TRY(make_work(point));
  work->use(*allocation);
  log_memory(*work, *allocation, point, false);
  if (Result<> submitted = submit(std::move(work), point, operation); !submitted) [[unlikely]]
    return std::unexpected(std::move(submitted.error()).note(fmt::format("while allocating {} bytes", size)));
  HALYARD_TRY(device.check_memory(request, allocation->memory, info, "queue_submit of an alloca"));
  allocation->memory_type = info.memory_type & ~static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL);
  allocation->usage = info.usage;
  return Buffer::create(std::move(allocation));
}

Result<> queue_dealloca(const QueuePoint& point, Buffer& buffer, uint64_t flags) {
  Allocation& allocation = buffer.allocation();
  if (!allocation.queue_ordered || allocation.indeterminate_lifetime) return queue_barrier(point);
  // Only the device that allocated the memory can free it, so a request to another device is forwarded.
  const bool at_origin = (flags & kDeallocaPreferOrigin) || &point.device != &allocation.device();
  const QueuePoint origin = {allocation.device(), allocation.origin_affinity, point.wait, point.signal,
                             point.memory};
  const QueuePoint& place = at_origin ? origin : point;
  if (exchange(allocation.deallocated, true, std::memory_order_relaxed))
    return fail(
        Code::FAILED_PRECONDITION,
        "dealloca of a buffer of {} bytes whose allocation has been deallocated before; deallocate it once",
        buffer.length());
  Reservation reservation(allocation, [](Object& object) noexcept {
    auto& refused = static_cast<Allocation&>(object);
    resume_sharing(refused);
    refused.deallocated.store(false, std::memory_order_relaxed);
  });
  // Work of other drivers and the host's mappings may still use the bytes, and this device does not know
  // their order.
  const bool frees = end_sharing(allocation);
  auto work = HALYARD_TRY(make_work(place));
  work->use(allocation);
  work->reservation = std::move(reservation);
  if (!frees) return submit(std::move(work), place, operation_of(HALYARD_OPERATION_BARRIER));
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_DEALLOCA);
  operation.dealloca.memory = allocation.memory;
  log_memory(*work, allocation, place, true);
  Result<> submitted = submit(std::move(work), place, operation);
  if (!submitted && allocation.device().memory_log()) [[unlikely]]
    allocation.log_done(true, false);  // no effect if the device has reported the end
  return submitted;
}

Result<> queue_fill(const QueuePoint& asked, Buffer& target, uint64_t offset, uint64_t length,
                    uint64_t pattern, uint32_t pattern_length) {
  if (length == 0) return queue_barrier(asked);
  const QueuePoint point = at_owner(asked, target);
  if (pattern_length != 1 && pattern_length != 2 && pattern_length != 4)
    return fail(Code::INVALID_ARGUMENT, "expected a fill pattern of 1, 2 or 4 bytes, found {}",
                pattern_length);
  length = rest(target, offset, length);
  if ((target.offset() + offset) % pattern_length != 0 ||
      (length != kWholeLength && length % pattern_length != 0))
    return fail(
        Code::INVALID_ARGUMENT,
        "expected offset and length of a fill in multiples of its pattern of {} bytes, found offset {} "
        "and length {}",
        pattern_length, offset, length);
  HALYARD_TRY(check_target(target, offset, length));
  if (length == 0) return queue_barrier(point);
  if (!point.device.has_operation(HALYARD_OPERATION_FILL))
    return submit_recorded(point, [&](CommandBuffer& commands) {
      return commands.fill({&target, 0, offset, length}, pattern, pattern_length);
    });
  auto work = HALYARD_TRY(make_work(point));
  work->use(target.allocation());
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_FILL);
  const uint64_t mask = (uint64_t{1} << 8 * pattern_length) - 1;
  operation.fill = {range_of(target, offset, length), static_cast<uint32_t>(pattern & mask), pattern_length};
  return submit(std::move(work), point, operation);
}

Result<> queue_update(const QueuePoint& asked, std::span<const uint8_t> source, Buffer& target,
                      uint64_t offset) {
  if (source.empty()) return queue_barrier(asked);
  const QueuePoint point = at_owner(asked, target);
  HALYARD_TRY(check_target(target, offset, source.size()));
  if (!point.device.has_operation(HALYARD_OPERATION_UPDATE))
    return submit_recorded(
        point, [&](CommandBuffer& commands) { return commands.update({&target, 0, offset, 0}, source); });
  auto work = HALYARD_TRY(make_work(point, block_bytes(source.size())));
  work->payload = std::make_unique_for_overwrite<uint8_t[]>(source.size());
  std::memcpy(work->payload.get(), source.data(), source.size());
  const void* bytes = work->payload.get();
  return submit_update(std::move(work), point, bytes, target, offset, source.size());
}

Result<> check_copy(Copy& copy) {
  const auto& [source, source_offset, target, target_offset, length] = copy;
  copy.length = rest(source, source_offset, length);
  HALYARD_TRY(with_note(check_source(source, source_offset, length), "copy source"));
  HALYARD_TRY(with_note(check_target(target, target_offset, length), "copy target"));
  const uint64_t from = source.offset() + source_offset;
  const uint64_t to = target.offset() + target_offset;
  if (&source.allocation() == &target.allocation() && from < to + length && to < from + length)
    return fail(
        Code::INVALID_ARGUMENT,
        "expected a copy whose source and target do not overlap, found [{}, +{}) and [{}, +{}) of one "
        "allocation; copy through another buffer",
        from, length, to, length);
  return {};
}

Result<> submit_copy(const QueuePoint& point, const Copy& copy, halyard_driver_memory_t from,
                     halyard_driver_memory_t to) {
  const auto& [source, source_offset, target, target_offset, length] = copy;
  if (!point.device.has_operation(HALYARD_OPERATION_COPY))
    return submit_recorded(point, [&](CommandBuffer& commands) {
      return commands.copy({&copy.source, 0, copy.source_offset, copy.length},
                           {&copy.target, 0, copy.target_offset, copy.length});
    });
  auto work = HALYARD_TRY(make_work(point));
  work->use(source.allocation());
  work->use(target.allocation());
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_COPY);
  operation.copy = {{from, 0, 0, source.offset() + source_offset, length},
                    {to, 0, 0, target.offset() + target_offset, length}};
  return submit(std::move(work), point, operation);
}

Result<> copy_on_device(const QueuePoint& point, Copy copy) {
  HALYARD_TRY(check_copy(copy));
  return submit_copy(point, copy, copy.source.allocation().memory, copy.target.allocation().memory);
}

// An update with the bytes of the file.
Result<> queue_read(const QueuePoint& asked, File& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length) {
  const QueuePoint point = at_owner(asked, target);
  HALYARD_TRY(check_file_access(source, kRead));
  if (length == 0) return queue_barrier(point);
  HALYARD_TRY(check_file(source, source_offset, length, "read"));
  HALYARD_TRY(check_target(target, target_offset, length));
  const std::span<const uint8_t> bytes = source.bytes().subspan(source_offset, length);
  if (!point.device.has_operation(HALYARD_OPERATION_UPDATE)) {
    // A recording copies the bytes of the file, which work that is waited for may still write.
    if (point.wait)
      return hold(point, 0,
                  [source = Ref<File>::share(&source), source_offset, target = Ref<Buffer>::share(&target),
                   target_offset, length](const QueuePoint& now) {
                    return queue_read(now, *source, source_offset, *target, target_offset, length);
                  });
    return submit_recorded(point, [&](CommandBuffer& commands) {
      return commands.update({&target, 0, target_offset, 0}, bytes);
    });
  }
  auto work = HALYARD_TRY(make_work(point));
  work->use(source);
  return submit_update(std::move(work), point, bytes.data(), target, target_offset, length);
}

// The driver waits, and copies the source to host-visible memory if necessary. Then the host writes the file
// and makes the signals.
Result<> queue_write(const QueuePoint& asked, Buffer& source, uint64_t source_offset, File& target,
                     uint64_t target_offset, uint64_t length) {
  const QueuePoint point = at_owner(asked, source);
  HALYARD_TRY(check_file_access(target, kWrite));
  if (length == 0) return queue_barrier(point);
  HALYARD_TRY(check_file(target, target_offset, length, "write"));
  HALYARD_TRY(check_source(source, source_offset, length));

  if (!source.is_mappable()) {
    Ref<Buffer> staging = HALYARD_TRY(Buffer::allocate(
        point.device, point.affinity, HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE,
        HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED, length, point.memory));
    Ref<Fence> copied = HALYARD_TRY(Fence::create(Ref<Device>::share(&point.device), point.memory));
    Result<> copy = copy_on_device({point.device, point.affinity, point.wait, copied.get(), point.memory},
                                   {source, source_offset, *staging, 0, length});
    if (!copy) {  // the arguments were valid, so this is a failure of the work
      make_signals(point.signal, point.device, HostSignals::all, copy.error());
      return copy;
    }
    return queue_write({point.device, point.affinity, copied.get(), point.signal, point.memory}, *staging, 0,
                       target, target_offset, length);
  }
  auto work = HALYARD_TRY(make_work(point));
  work->host_signals = HostSignals::all;
  work->write = {Ref<Buffer>::share(&source), source_offset, Ref<File>::share(&target), target_offset,
                 length};
  return submit(std::move(work), point, operation_of(HALYARD_OPERATION_BARRIER));
}

}  // namespace halyard::hal
