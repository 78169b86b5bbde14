// Queue work: checks arguments, converts them to a submission of the driver ABI, and retains the objects
// until the work has completed. To wait for another driver, the work waits for a semaphore of the executing
// device that follows the foreign semaphore (hal/queue/semaphore_fd.h). The host signals foreign semaphores
// on completion. Work on one buffer of another driver is queued on that buffer's device. Work on several
// buffers uses shared handles (hal/device/sharing.h); if there are none, copies go through the host
// (hal/queue/transfer.h).
#include "hal/queue/queue.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "base/atomics.h"
#include "base/c_boundary.h"
#include "base/inline_vector.h"
#include "hal/device/callback_scope.h"
#include "hal/device/pooled.h"
#include "hal/device/sharing.h"
#include "hal/driver/driver_memory.h"
#include "hal/queue/bridge.h"
#include "hal/queue/collective.h"
#include "hal/queue/semaphore_fd.h"
#include "hal/queue/transfer.h"
#include "hal/queue/wait.h"
#include "hal/trace/device_trace.h"

namespace halyard::hal {

namespace {

// ---- Submissions ----

// The state of a submission, from the call until its signals are made after the driver's `completed`. It has
// two holders, the submitter and the completion; the last holder frees it. Its objects are borrowed from the
// caller, and only retained if the work is still running when the call returns.
struct InFlight : Step, WorkTrace {
  std::atomic<int> holders{2};
  Status result;  // of the work

  Device* const home;      // the device on which it is queued
  Fence* const signal;     // may be null
  WorkScope* const scope;  // may be null
  Makes makes = Makes::foreign;
  InlineVector<Object*, 6> resources;
  bool keeps = false;              // the objects are retained
  InlineVector<Awaited, 2> waits;  // not Refs, which would keep the semaphores from failing
  std::unique_ptr<uint8_t[]> payload;
  Charge charge;

  // For queue_write: the copy to the file, after the driver's part has completed.
  struct FileWrite {
    Ref<Buffer> source;
    uint64_t source_offset = 0;
    Ref<File> target;
    uint64_t target_offset = 0;
    uint64_t length = 0;
  } write;

  explicit InFlight(const QueuePoint& point) : home(&point.device), signal(point.signal), scope(point.scope) {
    run = [](Step& self) noexcept { static_cast<InFlight&>(self).end(); };
  }

  Device& device() const { return *home; }
  // For the submitter: whether the signals are made and the completion has dropped its hold.
  bool is_over() const { return holders.load(std::memory_order_acquire) == 1; }
  void use(Object& object) { resources.push_back(&object); }
  void keep() {
    home->retain();
    if (signal) signal->retain();
    if (scope) scope->retain();
    for (Object* object : resources) object->retain();
    keeps = true;
  }
  Ref<Device> leave() {
    if (!keeps) return {};
    if (signal) signal->release();
    if (scope) scope->release();
    for (Object* object : resources) object->release();
    return Ref<Device>::adopt(home);
  }
  void drop_holder() noexcept {
    if (fetch_sub(holders, 1, std::memory_order_acq_rel) == 1) destroy_pooled(this);
  }
  // A failure fails all signals. If the driver has failed them, this has no effect; if the driver forgot to,
  // this releases the waiters.
  void end() noexcept {
    trace_done(signal);
    make_signals(signal, *home, result.ok() ? makes : Makes::all, result);
    drop_holder();
  }
};

// Owns work that has not been submitted yet.
struct DropWork {
  void operator()(InFlight* work) const noexcept { destroy_pooled(work); }
};
using OwnWork = std::unique_ptr<InFlight, DropWork>;

constexpr const char* kCharged = "queue work";

// `more`: additional bytes to charge.
Result<> charge_work(Charge& charge, const QueuePoint& point, uint64_t more) {
  const uint64_t timepoints = (point.wait ? point.wait->timepoints().size() : 0) +
                              (point.signal ? point.signal->timepoints().size() : 0);
  return charge.start(point.memory,
                      saturating_add(NodePool::footprint(sizeof(InFlight)) + driver_memory::kSubmission +
                                         timepoints * driver_memory::kTimepoint,
                                     more),
                      kCharged);
}

Result<OwnWork> make_work(const QueuePoint& point, uint64_t more = 0) {
  OwnWork work(new_pooled<InFlight>(point.device, point));
  if (point.memory) [[unlikely]]
    HALYARD_TRY(charge_work(work->charge, point, more));
  return work;
}

void completed(void* user, halyard_status_t handle) noexcept {
  const CallbackScope scope;
  auto* work = static_cast<InFlight*>(static_cast<WorkTrace*>(user));
  work->result = Status::adopt(handle);
  if (const InFlight::FileWrite& write = work->write; work->result.ok() && write.source)
    work->result = outcome_of([&] {
      return write.source->read(write.source_offset, write.target->bytes().data() + write.target_offset,
                                write.length);
    });
  run_step(*work);
}

halyard_operation_t operation_of(uint32_t kind) {
  halyard_operation_t operation = {};
  operation.struct_size = sizeof(operation);
  operation.kind = kind;
  return operation;
}

Result<> submit(OwnWork work, const QueuePoint& point, const halyard_operation_t& operation) {
  Device& device = work->device();
  halyard_submission_t submission = {};
  submission.struct_size = sizeof(submission);
  submission.affinity = device.queues(point.affinity);

  struct Point {
    Semaphore* semaphore;
    uint64_t value;
  };
  InlineVector<Point, 8> awaited;
  InlineVector<Ref<Semaphore>, 2> bridges;
  InlineVector<halyard_timepoint_t, 8> waits;
  InlineVector<halyard_timepoint_t, 8> signals;
  if (point.wait) {
    for (const Timepoint& timepoint : point.wait->timepoints()) {
      const bool is_own = &timepoint.semaphore->device().library() == &device.library();
      Point wait = {timepoint.semaphore.get(), timepoint.value};
      if (!is_own) {
        constexpr uint64_t kBridge = NodePool::footprint(sizeof(Semaphore)) + driver_memory::kSemaphore +
                                     2 * driver_memory::kSubscription;
        HALYARD_TRY(work->charge.grow_by(kBridge, kCharged));
        const Timepoint own = HALYARD_TRY(own_timepoint(device, timepoint));
        work->use(*own.semaphore);
        bridges.push_back(own.semaphore);
        wait = {own.semaphore.get(), own.value};
      }
      awaited.push_back(wait);
      waits.push_back({wait.semaphore->handle(), wait.value});
    }
  }
  if (work->signal && work->makes == Makes::foreign) {
    for (const Timepoint& timepoint : work->signal->timepoints()) {
      if (&timepoint.semaphore->device().library() == &device.library())
        signals.push_back({timepoint.semaphore->handle(), timepoint.value});
    }
  }
  work->waits.reserve(awaited.size());  // accepted work must not fail for lack of memory
  submission.wait_count = static_cast<uint32_t>(waits.size());
  submission.waits = waits.data();
  submission.signal_count = static_cast<uint32_t>(signals.size());
  submission.signals = signals.data();
  submission.operation = &operation;
  submission.stop = work->scope ? work->scope->stop_word() : nullptr;
  submission.completed = completed;
  submission.completed_user = static_cast<WorkTrace*>(work.get());
  work->trace_submit(device.trace(), operation.kind, point.wait);
  if (halyard_status_t status = device.table().queue_submit(device.handle(), &submission)) {
    // If the driver refuses an alloca, there is no memory, whatever the driver has stored here.
    if (operation.kind == HALYARD_OPERATION_ALLOCA) *operation.alloca_.memory = nullptr;
    return std::unexpected(Status::adopt(status));
  }

  if (work->is_over()) {
    // On other devices, whether a failure is returned would depend on timing.
    if (!(device.properties().capabilities & HALYARD_DEVICE_RUNS_IN_CALLER)) return {};
    return to_result(std::move(work->result));
  }
  for (const Point& wait : awaited) work->waits.push_back({*wait.semaphore, wait.value});
  work->keep();
  work.release()->drop_holder();
  return {};
}

// For drivers without the operation: submits a recorded command instead.
template <typename Record>
Result<> submit_recorded(const QueuePoint& point, Record record) {
  Ref<CommandBuffer> commands = HALYARD_TRY(CommandBuffer::create(
      Ref<Device>::share(&point.device), kOneShot, kTransfer, point.affinity, 0, point.memory));
  HALYARD_TRY(record(*commands));
  HALYARD_TRY(commands->finalize());
  return queue_execute(point, *commands, {});
}

// ---- Arguments ----

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

// Resolves kWholeLength. An offset past the end is left to the range check.
uint64_t rest(const Buffer& buffer, uint64_t offset, uint64_t length) {
  return length == kWholeLength && offset <= buffer.length() ? buffer.length() - offset : length;
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

// The queue point for work on this buffer alone.
QueuePoint at_owner(const QueuePoint& point, const Buffer& buffer) {
  if (!is_foreign(point.device, buffer)) return point;
  return {buffer.device(), kAnyQueue, point.wait, point.signal, point.memory, point.scope};
}

Result<Handles> handle_on(const QueuePoint& point, Allocation& allocation) {
  if (&allocation.device().library() == &point.device.library()) return Handles::ready;
  // If the wait has failed, that fails the signals, as with any other work.
  const bool waits = point.wait && !point.wait->query().ok();
  const Result<halyard_driver_memory_t> memory = memory_on(point.device, allocation);
  if (memory) return Handles::ready;
  if (waits && memory.error().code() == Code::FAILED_PRECONDITION && expect_sharing(allocation))
    return Handles::later;
  return std::unexpected(memory.error());
}

// Queues the work when its waits are reached. `again` retains its objects, of `kept` bytes.
Result<> hold(const QueuePoint& point, uint64_t kept,
              std::move_only_function<Result<>(const QueuePoint&)> again) {
  Charge charge;
  HALYARD_TRY(charge_work(charge, point, kept));
  return when_reached(point.wait, [again = std::move(again), device = Ref<Device>::share(&point.device),
                                   affinity = point.affinity, signal = Ref<Fence>::share(point.signal),
                                   charge = std::move(charge), memory = Ref<Budget>::share(point.memory),
                                   scope = Ref<WorkScope>::share(point.scope)](Status status) mutable {
    charge = {};
    if (status.ok())
      status = outcome_of(
          [&] { return again({*device, affinity, nullptr, signal.get(), memory.get(), scope.get()}); });
    // No effect on signals that have already failed.
    if (!status.ok()) make_signals(signal.get(), *device, Makes::all, status);
  });
}

// The target is the range of bytes that `work` retains.
Result<> submit_update(OwnWork work, const QueuePoint& point, const void* source, Buffer& target,
                       uint64_t offset, uint64_t length) {
  work->use(target.allocation());
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_UPDATE);
  operation.update = {source, range_of(target, offset, length)};
  return submit(std::move(work), point, operation);
}

}  // namespace

// ---- Operations ----

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
    Ref<Buffer> buffer =
        HALYARD_TRY(device.allocate(point.affinity, memory_type, usage, size, point.memory, point.owner));
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
  const halyard_memory_request_t request = {
      sizeof(halyard_memory_request_t),
      memory_type ? memory_type : static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL),
      usage ? usage : static_cast<uint32_t>(HALYARD_USAGE_DEFAULT),
      0,
      device.queues(point.affinity),
      size,
      point.owner};
  operation.alloca_.request = &request;
  operation.alloca_.memory = &allocation->memory;
  operation.alloca_.info = &info;
  auto work = HALYARD_TRY(make_work(point));
  work->use(*allocation);
  if (Result<> submitted = submit(std::move(work), point, operation); !submitted) [[unlikely]]
    return std::unexpected(std::move(submitted.error()).note(fmt::format("while allocating {} bytes", size)));
  HALYARD_TRY(device.check_memory(request, allocation->memory, info, "queue_submit of an alloca"));
  allocation->memory_type = info.memory_type & ~static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL);
  allocation->usage = info.usage;
  allocation->trace_memory();
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
  allocation.trace_end();
  // Work of other drivers may still use the bytes, and this device does not know its order.
  if (!end_sharing(allocation)) return queue_barrier(place);
  auto work = HALYARD_TRY(make_work(place));
  work->use(allocation);
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_DEALLOCA);
  operation.dealloca.memory = allocation.memory;
  return submit(std::move(work), place, operation);
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

Result<> queue_copy(const QueuePoint& asked, Buffer& source, uint64_t source_offset, Buffer& target,
                    uint64_t target_offset, uint64_t length) {
  if (length == 0) return queue_barrier(asked);
  // The driver that owns both buffers copies.
  const QueuePoint point = is_foreign(source.device(), target) ? asked : at_owner(asked, target);
  length = rest(source, source_offset, length);
  HALYARD_TRY(with_note(check_source(source, source_offset, length), "copy source"));
  HALYARD_TRY(with_note(check_target(target, target_offset, length), "copy target"));
  if (length == 0) return queue_barrier(point);
  halyard_range_t from = range_of(source, source_offset, length);
  halyard_range_t to = range_of(target, target_offset, length);
  if (from.memory == to.memory && from.offset < to.offset + length && to.offset < from.offset + length)
    return fail(
        Code::INVALID_ARGUMENT,
        "expected a copy whose source and target do not overlap, found [{}, +{}) and [{}, +{}) of one "
        "allocation; copy through another buffer",
        from.offset, length, to.offset, length);
  if (is_foreign(point.device, source) || is_foreign(point.device, target)) {
    const Result<Handles> source_handle = handle_on(point, source.allocation());
    const Result<Handles> target_handle = handle_on(point, target.allocation());
    if (!source_handle || !target_handle)  // no memory that both devices can access
      return transfer(point, source, source_offset, target, target_offset, length);
    if (*source_handle == Handles::later || *target_handle == Handles::later)
      return hold(point, 0,
                  [source_offset, target_offset, length, source = Ref<Buffer>::share(&source),
                   target = Ref<Buffer>::share(&target)](const QueuePoint& now) {
                    return queue_copy(now, *source, source_offset, *target, target_offset, length);
                  });
    from.memory = HALYARD_TRY(memory_on(point.device, source.allocation()));
    to.memory = HALYARD_TRY(memory_on(point.device, target.allocation()));
  }
  if (!point.device.has_operation(HALYARD_OPERATION_COPY))
    return submit_recorded(point, [&](CommandBuffer& commands) {
      return commands.copy({&source, 0, source_offset, length}, {&target, 0, target_offset, length});
    });
  auto work = HALYARD_TRY(make_work(point));
  work->use(source.allocation());
  work->use(target.allocation());
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_COPY);
  operation.copy = {from, to};
  return submit(std::move(work), point, operation);
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
  if (!point.device.has_operation(HALYARD_OPERATION_UPDATE))
    return submit_recorded(point, [&](CommandBuffer& commands) {
      return commands.update({&target, 0, target_offset, 0}, bytes);
    });
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
    Ref<Buffer> staging = HALYARD_TRY(
        point.device.allocate(point.affinity, HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE,
                              HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED, length, point.memory));
    Ref<Fence> copied = HALYARD_TRY(Fence::create(Ref<Device>::share(&point.device), point.memory));
    Result<> copy = queue_copy({point.device, point.affinity, point.wait, copied.get(), point.memory}, source,
                               source_offset, *staging, 0, length);
    if (!copy) {  // the arguments were valid, so this is a failure of the work
      make_signals(point.signal, point.device, Makes::all, copy.error());
      return copy;
    }
    return queue_write({point.device, point.affinity, copied.get(), point.signal, point.memory}, *staging, 0,
                       target, target_offset, length);
  }
  auto work = HALYARD_TRY(make_work(point));
  work->makes = Makes::all;
  work->write = {Ref<Buffer>::share(&source), source_offset, Ref<File>::share(&target), target_offset,
                 length};
  return submit(std::move(work), point, operation_of(HALYARD_OPERATION_BARRIER));
}

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
  return SlotEntry{&buffer.allocation(), offset, length};
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
      entries.push_back({&allocation, 0, allocation.size});
      continue;
    }
    Result<SlotEntry> entry = checked_entry(commands.device(), table[i], slots[i]);
    if (!entry) return std::unexpected(std::move(entry.error()).note(slot_note(commands, i)));
    entries.push_back(*entry);
  }
  return {};
}

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

Result<> submit_execute(const QueuePoint& point, CommandBuffer& commands,
                        std::span<const SlotEntry> entries) {
  if (!commands.collectives().empty()) return execute_collectives(point, commands, entries);
  return submit_list(point, commands, commands.handle(), entries);
}

Result<> submit_list(const QueuePoint& point, CommandBuffer& commands, halyard_driver_command_list_t list,
                     std::span<const SlotEntry> entries) {
  auto work = HALYARD_TRY(make_work(point, entries.size() * driver_memory::kBinding));
  work->use(commands);
  InlineVector<halyard_binding_t, 16> bindings;
  for (const SlotEntry& entry : entries) {
    if (!entry.allocation) {
      bindings.push_back({});
      continue;
    }
    bindings.push_back({HALYARD_TRY(memory_on(point.device, *entry.allocation)), entry.offset, entry.length});
    work->use(*entry.allocation);
  }
  halyard_operation_t operation = operation_of(HALYARD_OPERATION_EXECUTE);
  operation.execute = {list, bindings.data(), bindings.size()};
  return submit(std::move(work), point, operation);
}

Result<Handles> prepare_execute(const QueuePoint& point, CommandBuffer& commands,
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
  Handles handles = Handles::ready;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].allocation) continue;
    Result<Handles> handle = handle_on(point, *entries[i].allocation);
    if (!handle) return std::unexpected(std::move(handle.error()).note(slot_note(commands, i)));
    if (*handle == Handles::later) handles = Handles::later;
  }
  HALYARD_TRY(commands.begin_execution());
  return handles;
}

Result<> queue_execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table) {
  SlotEntries entries;
  if (HALYARD_TRY(prepare_execute(point, commands, table, entries)) == Handles::later &&
      commands.collectives().empty())  // those handle waits themselves, and draw tickets now
    return hold_execute(point, commands, entries);
  return submit_execute(point, commands, entries);
}

Result<> queue_flush(Device& device, uint64_t affinity) {
  if (!device.table().queue_flush) return {};
  return to_result(Status::adopt(device.table().queue_flush(device.handle(), device.queues(affinity))));
}

}  // namespace halyard::hal
