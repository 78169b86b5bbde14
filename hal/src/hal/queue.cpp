// Queue work: checks arguments, turns them into a submission of the driver ABI, and keeps what it uses until
// the driver says that it is done. Timepoints of other drivers are bridged: for each such wait, a semaphore
// of the executing device that the foreign one signals through a subscription; such signals are made by the
// host on completion.
#include "hal/queue.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "hal/callback_scope.h"
#include "hal/inline_vector.h"

namespace halyard::hal {

namespace {

// ---- Signals made by the host ----

struct HostSignal {
  Ref<Semaphore> semaphore;
  uint64_t value;
  Status failure;  // instead of the value
};

// Makes a signal, and those that drivers ask for meanwhile, one after the other: work that alternates between
// drivers would otherwise nest their calls without bound. A timepoint that is reached already stays as it is,
// without an error (ruling 9); a driver that cannot signal fails it, so that nobody waits for ever.
void make_signal(HostSignal signal) {
  static thread_local std::deque<HostSignal>* pending = nullptr;
  if (pending) {
    pending->push_back(std::move(signal));
    return;
  }
  std::deque<HostSignal> mine;
  pending = &mine;
  mine.push_back(std::move(signal));
  while (!mine.empty()) {
    const HostSignal next = std::move(mine.front());
    mine.pop_front();
    Status failure = next.failure;
    if (failure.ok()) failure = to_status(next.semaphore->signal(next.value));
    if (!failure.ok() && (next.failure || failure.code() != Code::INVALID_ARGUMENT))
      next.semaphore->fail(failure);
  }
  pending = nullptr;
}

enum class Makes { foreign, all };  // which timepoints of a fence the host signals

void make_signals(Fence* fence, const Device& device, Makes makes, const Status& failure) {
  if (!fence) return;
  for (const Timepoint& timepoint : fence->timepoints()) {
    const bool foreign = &timepoint.semaphore->device().library() != &device.library();
    if (foreign || makes == Makes::all) make_signal({timepoint.semaphore, timepoint.value, failure});
  }
}

// ---- Bridges ----

struct Bridge {
  Ref<Semaphore> foreign;
  Ref<Semaphore> own;  // 1 as soon as the foreign timepoint is reached
};

void bridge_called(void* user, halyard_status_t status) {
  const CallbackScope scope;
  const std::unique_ptr<Bridge> bridge(static_cast<Bridge*>(user));
  make_signal({bridge->own, 1, Status::adopt(status)});
}

Result<Ref<Semaphore>> make_bridge(Device& device, const Timepoint& timepoint) {
  Ref<Semaphore> own = HALYARD_TRY(Semaphore::create(Ref<Device>::share(&device), 0));
  auto bridge = std::make_unique<Bridge>(Bridge{timepoint.semaphore, own});
  const Semaphore& foreign = *timepoint.semaphore;
  if (halyard_status_t status = foreign.device().table().semaphore_subscribe(
          foreign.handle(), timepoint.value, bridge_called, bridge.get()))
    return std::unexpected(Status::adopt(status).note(
        fmt::format("waiting for a fence of device '{}'", foreign.device().uri())));
  (void)bridge.release();  // bridge_called frees it, and may have done so already
  return own;
}

// ---- Submissions ----

// Everything that a submission uses, from the call until the driver's `completed`. Held by both; the last one
// frees it.
struct InFlight {
  std::atomic<int> holders{2};
  std::thread::id submitter = std::this_thread::get_id();
  Status result;                // for the submitter, if the work was completed within its call
  bool completed_here = false;  // on the submitting thread

  Ref<Device> device;
  Ref<Fence> wait;
  Ref<Fence> signal;
  Makes makes = Makes::foreign;
  InlineVector<Ref<Object>, 6> resources;
  std::unique_ptr<uint8_t[]> payload;

  // queue_write: what to copy to where once the driver's part is done.
  struct FileWrite {
    Ref<Buffer> source;
    uint64_t source_offset = 0;
    Ref<File> target;
    uint64_t target_offset = 0;
    uint64_t length = 0;
  } write;

  explicit InFlight(const QueuePoint& point)
      : device(Ref<Device>::share(&point.device)),
        wait(Ref<Fence>::share(point.wait)),
        signal(Ref<Fence>::share(point.signal)) {}

  void keep(Ref<Object> object) { resources.push_back(std::move(object)); }
};

void completed(void* user, halyard_status_t handle) {
  const CallbackScope scope;
  auto* work = static_cast<InFlight*>(user);
  Status status = Status::adopt(handle);
  if (const InFlight::FileWrite& write = work->write; status.ok() && write.source)
    status = to_status(write.source->read(write.source_offset,
                                          write.target->bytes().data() + write.target_offset, write.length));
  make_signals(work->signal.get(), *work->device, work->makes, status);
  work->completed_here = std::this_thread::get_id() == work->submitter;
  if (work->completed_here) work->result = std::move(status);
  if (work->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete work;
}

halyard_operation_t operation_of(uint32_t kind) {
  halyard_operation_t operation = {};
  operation.struct_size = sizeof(operation);
  operation.kind = kind;
  return operation;
}

Result<> submit(std::unique_ptr<InFlight> work, uint64_t affinity, const halyard_operation_t& operation) {
  Device& device = *work->device;
  halyard_submission_t submission = {};
  submission.struct_size = sizeof(submission);
  submission.affinity = device.queues(affinity);

  InlineVector<halyard_timepoint_t, 8> waits;
  InlineVector<halyard_timepoint_t, 8> signals;
  if (work->wait) {
    for (const Timepoint& timepoint : work->wait->timepoints()) {
      if (&timepoint.semaphore->device().library() == &device.library()) {
        waits.push_back({timepoint.semaphore->handle(), timepoint.value});
        continue;
      }
      Ref<Semaphore> bridge = HALYARD_TRY(make_bridge(device, timepoint));
      waits.push_back({bridge->handle(), 1});
      work->keep(std::move(bridge));
    }
  }
  if (work->signal && work->makes == Makes::foreign) {
    for (const Timepoint& timepoint : work->signal->timepoints()) {
      if (&timepoint.semaphore->device().library() == &device.library())
        signals.push_back({timepoint.semaphore->handle(), timepoint.value});
    }
  }
  submission.wait_count = static_cast<uint32_t>(waits.size());
  submission.waits = waits.data();
  submission.signal_count = static_cast<uint32_t>(signals.size());
  submission.signals = signals.data();
  submission.operation = &operation;
  submission.completed = completed;
  submission.completed_user = work.get();
  if (halyard_status_t status = device.table().queue_submit(device.handle(), &submission))
    return std::unexpected(Status::adopt(status));

  InFlight* accepted = work.release();
  if (accepted->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return {};
  // Completed within the call. Only what happened on this thread is told: anything else would depend on
  // timing.
  const std::unique_ptr<InFlight> done(accepted);
  return to_result(done->completed_here ? std::move(done->result) : Status());
}

// For drivers without the operation: the same as a recorded command.
template <typename Record>
Result<> submit_recorded(const QueuePoint& point, Record record) {
  Ref<CommandBuffer> commands = HALYARD_TRY(
      CommandBuffer::create(Ref<Device>::share(&point.device), kOneShot, kTransfer, point.affinity, 0));
  HALYARD_TRY(record(*commands));
  HALYARD_TRY(commands->finalize());
  return queue_execute(point, *commands, {});
}

// ---- Arguments ----

Result<> check_library(const Device& device, const Buffer& buffer) {
  if (&buffer.device().library() == &device.library()) return {};
  return fail(Code::INVALID_ARGUMENT,
              "buffer belongs to device '{}', which shares no memory with '{}', where the work is queued; "
              "queue it there, "
              "or copy the bytes to a buffer of this device",
              buffer.device().uri(), device.uri());
}

// The requirements of a recorded transfer (ruling 7).
Result<> check_transfer(const Device& device, const Buffer& buffer, uint64_t offset, uint64_t length,
                        uint32_t usage, uint32_t access) {
  HALYARD_TRY(check_library(device, buffer));
  HALYARD_TRY(buffer.check_usage(usage));
  HALYARD_TRY(buffer.check_access(access));
  HALYARD_TRY(buffer.check_memory_type(HALYARD_MEMORY_DEVICE_VISIBLE));
  return buffer.check_range(offset, length);
}

Result<> check_source(const Device& device, const Buffer& buffer, uint64_t offset, uint64_t length) {
  return check_transfer(device, buffer, offset, length, HALYARD_USAGE_TRANSFER_SOURCE, kRead);
}

Result<> check_target(const Device& device, const Buffer& buffer, uint64_t offset, uint64_t length) {
  return check_transfer(device, buffer, offset, length, HALYARD_USAGE_TRANSFER_TARGET, kWrite);
}

// The length that "the rest" stands for. An offset behind the end is left for the range check to find.
uint64_t rest(const Buffer& buffer, uint64_t offset, uint64_t length) {
  return length == kWholeLength && offset <= buffer.length() ? buffer.length() - offset : length;
}

Result<> check_file(const File& file, uint64_t offset, uint64_t length, const char* verb) {
  if (offset > file.length() || length > file.length() - offset)
    return fail(Code::OUT_OF_RANGE, "{} range [{}, {}) exceeds file length {}", verb, offset, offset + length,
                file.length());
  return {};
}

Result<> check_file_access(const File& file, uint32_t access) {
  if ((file.access() & access) == access) return {};
  return fail(Code::PERMISSION_DENIED,
              "file operation cannot be performed; file allows {}, operation requires {}",
              access_text(file.access()), access_text(access));
}

halyard_range_t range_of(const Buffer& buffer, uint64_t offset, uint64_t length) {
  return {buffer.allocation().memory, 0, 0, buffer.offset() + offset, length};
}

Ref<Object> allocation_of(const Buffer& buffer) { return Ref<Allocation>::share(&buffer.allocation()); }

// The target range is the bytes, which `work` keeps.
Result<> submit_update(std::unique_ptr<InFlight> work, const QueuePoint& point, const void* source,
                       Buffer& target, uint64_t offset, uint64_t length) {
  work->keep(allocation_of(target));
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_UPDATE);
  operation.update = {source, range_of(target, offset, length)};
  return submit(std::move(work), point.affinity, operation);
}

}  // namespace

// ---- Operations ----

Result<> queue_barrier(const QueuePoint& point) {
  return submit(std::make_unique<InFlight>(point), point.affinity, operation_of(HALYARD_OPERATION_BARRIER));
}

Result<Ref<Buffer>> queue_alloca(const QueuePoint& point, uint64_t pool, uint32_t memory_type, uint32_t usage,
                                 uint64_t size, uint64_t flags) {
  Device& device = point.device;
  const halyard_device_properties_t& properties = device.properties();
  if (pool != 0)
    return fail(Code::UNIMPLEMENTED,
                "VM queue allocation pools are not supported (pool {}); use pool 0, the default", pool);
  if (!(properties.capabilities & HALYARD_DEVICE_QUEUE_ALLOCA)) {
    Ref<Buffer> buffer = HALYARD_TRY(device.allocate(point.affinity, memory_type, usage, size));
    buffer->allocation().indeterminate_lifetime = (flags & kAllocaIndeterminateLifetime) != 0;
    HALYARD_TRY(queue_barrier(point));
    return buffer;
  }
  if (size > properties.maximum_allocation)
    return fail(
        Code::RESOURCE_EXHAUSTED,
        "failed to allocate buffer of length {}: device '{}' gives at most {} bytes in one allocation", size,
        device.uri(), properties.maximum_allocation);

  Ref<Allocation> allocation = make<Allocation>();
  allocation->device = Ref<Device>::share(&device);
  allocation->size = size;
  allocation->origin_affinity = point.affinity;
  allocation->queue_ordered = true;
  allocation->indeterminate_lifetime = (flags & kAllocaIndeterminateLifetime) != 0;
  halyard_memory_info_t info = {};
  info.struct_size = sizeof(info);
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_ALLOCA);
  const halyard_memory_request_t request = {
      sizeof(halyard_memory_request_t),
      memory_type ? memory_type : static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL),
      usage ? usage : static_cast<uint32_t>(HALYARD_USAGE_DEFAULT),
      0,
      device.queues(point.affinity),
      size};
  operation.alloca_.request = &request;
  operation.alloca_.memory = &allocation->memory;
  operation.alloca_.info = &info;
  auto work = std::make_unique<InFlight>(point);
  work->keep(allocation);
  HALYARD_TRY(with_note(submit(std::move(work), point.affinity, operation),
                        fmt::format("failed to allocate buffer of length {}", size)));
  if (info.size < size)
    return fail(Code::INTERNAL, "the driver of device '{}' gave {} bytes of {}", device.uri(), info.size,
                size);
  allocation->memory_type = info.memory_type & ~static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL);
  allocation->usage = info.usage;
  return Buffer::create(std::move(allocation));
}

Result<> queue_dealloca(const QueuePoint& point, Buffer& buffer, uint64_t flags) {
  Allocation& allocation = buffer.allocation();
  if (!allocation.queue_ordered || allocation.indeterminate_lifetime) return queue_barrier(point);
  // Only the device that gave the memory can take it back, so a request at another one goes there too.
  const bool at_origin = (flags & kDeallocaPreferOrigin) || &point.device != allocation.device.get();
  const QueuePoint origin = {*allocation.device, allocation.origin_affinity, point.wait, point.signal};
  const QueuePoint& place = at_origin ? origin : point;
  if (allocation.deallocated.exchange(true))
    return fail(
        Code::FAILED_PRECONDITION,
        "dealloca of a buffer of {} bytes whose allocation has been deallocated before; deallocate it once",
        buffer.length());
  auto work = std::make_unique<InFlight>(place);
  work->keep(allocation_of(buffer));
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_DEALLOCA);
  operation.dealloca.memory = allocation.memory;
  return submit(std::move(work), place.affinity, operation);
}

Result<> queue_fill(const QueuePoint& point, Buffer& target, uint64_t offset, uint64_t length,
                    uint64_t pattern, uint32_t pattern_length) {
  if (length == 0) return queue_barrier(point);
  if (pattern_length != 1 && pattern_length != 2 && pattern_length != 4)
    return fail(Code::INVALID_ARGUMENT, "fill patterns must be 1, 2, or 4 bytes (got {})", pattern_length);
  length = rest(target, offset, length);
  if ((target.offset() + offset) % pattern_length != 0 ||
      (length != kWholeLength && length % pattern_length != 0))
    return fail(Code::INVALID_ARGUMENT,
                "attempting to fill a range with {} byte values that is not aligned (offset={}, length={})",
                pattern_length, offset, length);
  HALYARD_TRY(check_target(point.device, target, offset, length));
  if (length == 0) return queue_barrier(point);
  if (!point.device.has_operation(HALYARD_OPERATION_FILL))
    return submit_recorded(point, [&](CommandBuffer& commands) {
      return commands.fill({&target, 0, offset, length}, pattern, pattern_length);
    });
  auto work = std::make_unique<InFlight>(point);
  work->keep(allocation_of(target));
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_FILL);
  const uint64_t mask = (uint64_t{1} << 8 * pattern_length) - 1;
  operation.fill = {range_of(target, offset, length), static_cast<uint32_t>(pattern & mask), pattern_length};
  return submit(std::move(work), point.affinity, operation);
}

Result<> queue_update(const QueuePoint& point, std::span<const uint8_t> source, Buffer& target,
                      uint64_t offset) {
  if (source.empty()) return queue_barrier(point);
  HALYARD_TRY(check_target(point.device, target, offset, source.size()));
  if (!point.device.has_operation(HALYARD_OPERATION_UPDATE))
    return submit_recorded(
        point, [&](CommandBuffer& commands) { return commands.update(source, {&target, 0, offset, 0}); });
  auto work = std::make_unique<InFlight>(point);
  work->payload = std::make_unique_for_overwrite<uint8_t[]>(source.size());
  std::memcpy(work->payload.get(), source.data(), source.size());
  const void* bytes = work->payload.get();
  return submit_update(std::move(work), point, bytes, target, offset, source.size());
}

Result<> queue_copy(const QueuePoint& point, Buffer& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length) {
  if (length == 0) return queue_barrier(point);
  length = rest(source, source_offset, length);
  HALYARD_TRY(with_note(check_source(point.device, source, source_offset, length), "copy source"));
  HALYARD_TRY(with_note(check_target(point.device, target, target_offset, length), "copy target"));
  if (length == 0) return queue_barrier(point);
  const halyard_range_t from = range_of(source, source_offset, length);
  const halyard_range_t to = range_of(target, target_offset, length);
  if (from.memory == to.memory && from.offset < to.offset + length && to.offset < from.offset + length)
    return fail(
        Code::INVALID_ARGUMENT,
        "source and target ranges overlap within the same buffer (source [{}, +{}), target [{}, +{}) of the "
        "allocation)",
        from.offset, length, to.offset, length);
  if (!point.device.has_operation(HALYARD_OPERATION_COPY))
    return submit_recorded(point, [&](CommandBuffer& commands) {
      return commands.copy({&source, 0, source_offset, length}, {&target, 0, target_offset, length});
    });
  auto work = std::make_unique<InFlight>(point);
  work->keep(allocation_of(source));
  work->keep(allocation_of(target));
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_COPY);
  operation.copy = {from, to};
  return submit(std::move(work), point.affinity, operation);
}

// An update from the file's bytes.
Result<> queue_read(const QueuePoint& point, File& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length) {
  HALYARD_TRY(check_file_access(source, kRead));
  if (length == 0) return queue_barrier(point);
  HALYARD_TRY(check_file(source, source_offset, length, "read"));
  HALYARD_TRY(check_target(point.device, target, target_offset, length));
  const std::span<const uint8_t> bytes = source.bytes().subspan(source_offset, length);
  if (!point.device.has_operation(HALYARD_OPERATION_UPDATE))
    return submit_recorded(point, [&](CommandBuffer& commands) {
      return commands.update(bytes, {&target, 0, target_offset, 0});
    });
  auto work = std::make_unique<InFlight>(point);
  work->keep(Ref<File>::share(&source));
  return submit_update(std::move(work), point, bytes.data(), target, target_offset, length);
}

// The driver waits (and copies to memory that the host can read, where the source is none); the host writes
// the file and then makes the signals itself.
Result<> queue_write(const QueuePoint& point, Buffer& source, uint64_t source_offset, File& target,
                     uint64_t target_offset, uint64_t length) {
  HALYARD_TRY(check_file_access(target, kWrite));
  if (length == 0) return queue_barrier(point);
  HALYARD_TRY(check_file(target, target_offset, length, "write"));
  HALYARD_TRY(check_source(point.device, source, source_offset, length));

  const bool mappable =
      (source.memory_type() & HALYARD_MEMORY_HOST_VISIBLE) && (source.usage() & HALYARD_USAGE_MAPPING_SCOPED);
  if (!mappable) {
    Ref<Buffer> staging = HALYARD_TRY(
        point.device.allocate(point.affinity, HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE,
                              HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED, length));
    Ref<Fence> copied = HALYARD_TRY(Fence::create(Ref<Device>::share(&point.device)));
    Result<> copy = queue_copy({point.device, point.affinity, point.wait, copied.get()}, source,
                               source_offset, *staging, 0, length);
    if (!copy) {  // the arguments were right, so this is a failure of the work
      make_signals(point.signal, point.device, Makes::all, copy.error());
      return copy;
    }
    return queue_write({point.device, point.affinity, copied.get(), point.signal}, *staging, 0, target,
                       target_offset, length);
  }
  auto work = std::make_unique<InFlight>(point);
  work->makes = Makes::all;
  work->write = {Ref<Buffer>::share(&source), source_offset, Ref<File>::share(&target), target_offset,
                 length};
  return submit(std::move(work), point.affinity, operation_of(HALYARD_OPERATION_BARRIER));
}

namespace {

// The entry as the driver gets it.
Result<halyard_binding_t> resolve_entry(const Device& device, const Binding& entry, const SlotNeeds& needs) {
  if (!entry.buffer)
    return fail(Code::INVALID_ARGUMENT, "binding table slot requires a buffer but none was provided");
  const Buffer& buffer = *entry.buffer;
  HALYARD_TRY(check_library(device, buffer));
  HALYARD_TRY(buffer.check_usage(needs.usage));
  HALYARD_TRY(buffer.check_access(needs.access));
  HALYARD_TRY(buffer.check_memory_type(HALYARD_MEMORY_DEVICE_VISIBLE));
  const uint64_t length = rest(buffer, entry.offset, entry.length);
  HALYARD_TRY(buffer.check_range(entry.offset, length));
  if (needs.extent > length)
    return fail(Code::OUT_OF_RANGE,
                "at least one command attempted to access an address outside of the valid bound buffer range "
                "(commands "
                "reach byte {} of an entry of {} bytes at offset {})",
                needs.extent, length, entry.offset);
  const uint64_t offset = buffer.offset() + entry.offset;
  if (offset % needs.alignment != 0)
    return fail(Code::INVALID_ARGUMENT,
                "binding offset and/or length do not match the required alignment of one or more command "
                "(offset={} in a "
                "buffer at byte {} of its allocation, alignment={})",
                entry.offset, buffer.offset(), needs.alignment);
  return halyard_binding_t{buffer.allocation().memory, offset, length};
}

}  // namespace

Result<> queue_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table) {
  if (commands.state() != CommandBuffer::State::ready) return commands.begin_execution();
  if (&commands.device() != &point.device)
    return fail(Code::INVALID_ARGUMENT,
                "command buffer was recorded for device '{}' and cannot be executed on '{}'",
                commands.device().uri(), point.device.uri());
  const std::span<const SlotNeeds> slots = commands.slots();
  if (table.size() < slots.size()) {
    if (table.empty())
      return fail(Code::INVALID_ARGUMENT,
                  "indirect command buffer requires at least {} bindings but no binding table was provided",
                  slots.size());
    return fail(Code::OUT_OF_RANGE,
                "indirect command buffer requires at least {} bindings but only {} were provided",
                slots.size(), table.size());
  }
  if ((commands.mode() & kAllowInline) && point.wait && !point.wait->timepoints().empty())
    return fail(
        Code::INVALID_ARGUMENT,
        "inline command buffer submitted with a wait; inline command buffers must be ready to execute "
        "immediately");

  auto work = std::make_unique<InFlight>(point);
  work->keep(Ref<CommandBuffer>::share(&commands));
  InlineVector<halyard_binding_t, 16> bindings;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].used) {
      bindings.push_back({});
      continue;
    }
    Result<halyard_binding_t> binding = resolve_entry(point.device, table[i], slots[i]);
    if (!binding)
      return std::unexpected(std::move(binding.error()).note(fmt::format("binding table slot {}", i)));
    bindings.push_back(*binding);
    work->keep(allocation_of(*table[i].buffer));
  }
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_EXECUTE);
  operation.execute = {commands.handle(), bindings.data(), bindings.size()};
  HALYARD_TRY(commands.begin_execution());
  return submit(std::move(work), point.affinity, operation);
}

Result<> queue_flush(Device& device, uint64_t affinity) {
  if (!device.table().queue_flush) return {};
  return to_result(Status::adopt(device.table().queue_flush(device.handle(), device.queues(affinity))));
}

}  // namespace halyard::hal
