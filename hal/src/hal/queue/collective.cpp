// A chain of steps. A step executes either a piece of the driver, or the collectives of a region, which begin
// together: copy the bytes to host-visible memory, let the provider work, copy the bytes back.
#include "hal/queue/collective.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/c_boundary.h"
#include "base/loop.h"
#include "hal/channel/channel.h"
#include "hal/device/callback_scope.h"
#include "hal/queue/operations.h"
#include "hal/queue/stepwise.h"
#include "halyard/channel/text.hpp"

namespace halyard::hal {

namespace {

// How long a submission may use the program's thread to complete a collective. Passing it to a thread of the
// provider, and being woken by that thread, takes as long.
constexpr uint64_t kPatienceNs = 50'000;

// Runs the kernels that follow a collective, on devices that run in their caller. Kernels must block neither
// a thread of a provider, because it serves all channels, nor the loop of an instance, because it runs the
// timers.
Loop& compute_loop() {
  static Loop& loop = *Loop::create().detach();  // not destroyed at exit
  return loop;
}

struct CollectiveWork;

// The bytes that a collective sends or receives: in the allocation, or in staging memory of its device.
struct Side {
  Allocation* allocation = nullptr;  // null: not used
  uint64_t offset = 0;
  uint64_t length = 0;
  Ref<Buffer> staging;
  Allocation* mapped = nullptr;
};

void unmap(Side& side) {
  if (Allocation* const mapped = std::exchange(side.mapped, nullptr))
    mapped->device().table().memory_unmap(mapped->device().handle(), mapped->memory);
}

// One collective of this execution.
struct Pending {
  CollectiveWork* work = nullptr;
  const CommandBuffer::RecordedCollective* recorded = nullptr;
  halyard_collective_t collective = {};
  uint64_t ticket = 0;
  bool had_its_turn = false;
  uint64_t begin = 0;  // timestamp for the trace
  Side send;
  Side receive;
};

struct CollectiveWork final : ObjectOf<CollectiveWork>, StepwiseExecution, Step {
  static const ObjectType kType;

  CollectiveWork(const QueuePoint& point, CommandBuffer& executed);
  ~CollectiveWork();

  const std::thread::id submitter = std::this_thread::get_id();
  std::vector<SlotEntry> entries;
  std::vector<Ref<Allocation>> kept;  // the allocations of the entries
  std::vector<Pending> parts;         // one for each collective of the recording
  const CommandBuffer::Piece* piece = nullptr;
  size_t next = 0;                   // index of the next piece
  std::atomic<uint32_t> missing{0};  // collectives of this region that have not completed
  std::mutex mutex;                  // guards `failure`
  Status failure;
  Charge charge;

  bool runs_in_caller() const { return device->properties().capabilities & HALYARD_DEVICE_RUNS_IN_CALLER; }
  std::span<Pending> region() {
    return std::span(parts).subspan(piece->first_collective, piece->collective_count);
  }

  Result<> when(const Fence* fence, std::move_only_function<Result<>()> then);
  void end(Status status);
  void skip_turns(const Status& why);

  Result<> go_on();
  Result<> submit_piece();
  Result<> begin_collectives();
  Result<> start_collectives();
  void completed(Pending& part, Status status);
  Result<> end_collectives();
};

const ObjectType CollectiveWork::kType = object_type<CollectiveWork>("hal.collective_work");

CollectiveWork::CollectiveWork(const QueuePoint& point, CommandBuffer& executed)
    : StepwiseExecution(point, executed) {
  run = [](Step& self) noexcept {
    const auto work = Ref<CollectiveWork>::adopt(static_cast<CollectiveWork*>(&self));
    if (Status status = outcome_of([&] { return work->end_collectives(); })) work->end(std::move(status));
  };
}

CollectiveWork::~CollectiveWork() {
  for (Pending& part : parts) {
    unmap(part.send);
    unmap(part.receive);
  }
  skip_turns({Code::ABORTED, "work on a device was dropped before its collectives began"});
}

Result<> CollectiveWork::when(const Fence* fence, std::move_only_function<Result<>()> then) {
  return when_reached(
      fence, [self = Ref<CollectiveWork>::share(this), then = std::move(then)](Status status) mutable {
        if (status.ok()) status = outcome_of(then);
        if (!status.ok()) self->end(std::move(status));
      });
}

void CollectiveWork::end(Status status) {
  skip_turns(status);
  finish(std::move(status));
}

// Fails the channels of collectives that had no turn, because the other ranks would wait for this rank.
void CollectiveWork::skip_turns(const Status& why) {
  for (Pending& part : parts) {
    if (std::exchange(part.had_its_turn, true)) continue;
    Channel* const channel = part.recorded->channel;
    channel->at_turn(part.ticket, [channel = Ref<Channel>::share(channel), why] { channel->fail(why); });
  }
}

// ---- Bytes ----

bool is_seen_by_host(const Allocation& allocation) {
  constexpr uint32_t kPlain = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT;
  const halyard_driver_table_t& table = allocation.device().table();
  return (allocation.memory_type & kPlain) == kPlain && table.memory_map && table.memory_unmap;
}

Side side_of(const halyard_range_t& range, Allocation* direct, std::span<const SlotEntry> entries) {
  Side side;
  if (range.length == 0) return side;
  side.allocation = direct ? direct : entries[range.slot].allocation;
  side.offset = direct ? range.offset : entries[range.slot].offset + range.offset;
  side.length = range.length;
  return side;
}

Result<void*> map(Side& side) {
  if (!side.allocation) return nullptr;
  Allocation& allocation = side.staging ? side.staging->allocation() : *side.allocation;
  const Device& owner = allocation.device();
  void* pointer = nullptr;
  HALYARD_TRY(to_result(Status::adopt(
      owner.table().memory_map(owner.handle(), allocation.memory, HALYARD_MAP_READ | HALYARD_MAP_WRITE,
                               side.staging ? 0 : side.offset, side.length, &pointer))));
  HALYARD_TRY(owner.check_given(pointer, "memory_map"));
  side.mapped = &allocation;
  return pointer;
}

// Allocates host-visible staging memory on the device, for memory that is not host-visible.
Result<Ref<Buffer>> staging_for(const Side& side) {
  return Buffer::allocate(side.allocation->device(), kAnyQueue,
                          HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE,
                          HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED, side.length);
}

Result<Ref<Fence>> copy(Device& device, Buffer& source, uint64_t source_offset, Buffer& target,
                        uint64_t target_offset, uint64_t length) {
  Result<Ref<Fence>> done = Fence::create(Ref<Device>::share(&device));
  if (!done) return done;
  HALYARD_TRY(copy_on_device({device, kAnyQueue, nullptr, done->get()},
                             {source, source_offset, target, target_offset, length}));
  return done;
}

// Returns null if there is nothing to wait for.
Result<Ref<Fence>> stage_in(Pending& part) {
  if (part.receive.allocation && !is_seen_by_host(*part.receive.allocation))
    part.receive.staging = HALYARD_TRY(staging_for(part.receive));
  if (!part.send.allocation || is_seen_by_host(*part.send.allocation)) return Ref<Fence>();
  part.send.staging = HALYARD_TRY(staging_for(part.send));
  const Ref<Buffer> source = Buffer::create(Ref<Allocation>::share(part.send.allocation));
  return copy(part.send.allocation->device(), *source, part.send.offset, *part.send.staging, 0,
              part.send.length);
}

Result<Ref<Fence>> stage_out(Pending& part) {
  if (!part.receive.staging) return Ref<Fence>();
  const Ref<Buffer> target = Buffer::create(Ref<Allocation>::share(part.receive.allocation));
  return copy(part.receive.allocation->device(), *part.receive.staging, 0, *target, part.receive.offset,
              part.receive.length);
}

Result<Ref<Fence>> join(const std::vector<Ref<Fence>>& fences) {
  std::vector<Fence*> all;
  for (const Ref<Fence>& fence : fences) all.push_back(fence.get());
  return Fence::join(all);
}

// ---- Steps ----

Result<> CollectiveWork::go_on() {
  const std::span<const CommandBuffer::Piece> pieces = commands->pieces();
  if (next == pieces.size()) {
    finish({});
    return {};
  }
  piece = &pieces[next++];
  return piece->list ? submit_piece() : begin_collectives();
}

Result<> CollectiveWork::submit_piece() {
  const Ref<Fence> done = HALYARD_TRY(Fence::create(device));
  HALYARD_TRY(submit_list({*device, affinity, nullptr, done.get(), nullptr, scope.get()}, *commands,
                          piece->list, entries));
  return when(done.get(), [this] { return go_on(); });
}

Result<> CollectiveWork::begin_collectives() {
  std::vector<Ref<Fence>> staged;
  for (Pending& part : region())
    if (Ref<Fence> fence = HALYARD_TRY(stage_in(part))) staged.push_back(std::move(fence));
  if (staged.empty()) return start_collectives();
  return when(HALYARD_TRY(join(staged)).get(), [this] { return start_collectives(); });
}

Result<> CollectiveWork::start_collectives() {
  for (Pending& part : region()) {
    part.collective.send = HALYARD_TRY(map(part.send));
    part.collective.receive = HALYARD_TRY(map(part.receive));
    HALYARD_TRY(check_overlap(part.collective, HALYARD_TRY(part.recorded->channel->place(nullptr)),
                              {part.send.length, part.receive.length},
                              reinterpret_cast<uintptr_t>(part.collective.send),
                              reinterpret_cast<uintptr_t>(part.collective.receive)));
  }
  const bool may_stay = std::this_thread::get_id() == submitter || runs_in_caller();
  missing.store(static_cast<uint32_t>(region().size()) + 1, std::memory_order_relaxed);
  for (Pending& part : region()) {
    // Collectives that begin together may need each other, so only the last one is waited for.
    part.collective.patience_ns = may_stay && &part == &region().back() ? kPatienceNs : 0;
    part.had_its_turn = true;
    retain();  // until completed()
    part.recorded->channel->at_turn(part.ticket, [&part] {
      if (part.work->device->trace()) [[unlikely]]
        part.begin = Tracer::now();
      if (Status status = part.recorded->channel->submit(part.collective))
        part.work->completed(part, std::move(status));
    });
  }
  if (missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return {};
  return end_collectives();
}

void CollectiveWork::completed(Pending& part, Status status) {
  if (DeviceTrace* const trace = device->trace()) [[unlikely]]
    part.recorded->channel->trace(&trace->tracer(), channel::text_of(part.collective), part.begin,
                                  Tracer::now());
  if (!status.ok()) {
    const std::lock_guard lock(mutex);
    if (failure.ok()) failure = std::move(status);
  }
  if (missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return release();
  // The step now owns the reference.
  if (runs_in_caller()) {
    compute_loop().post(*this);
  } else {
    run_step(*this);
  }
}

Result<> CollectiveWork::end_collectives() {
  for (Pending& part : region()) {
    unmap(part.send);
    unmap(part.receive);
  }
  if (failure) return std::unexpected(failure);
  std::vector<Ref<Fence>> staged;
  for (Pending& part : region())
    if (Ref<Fence> fence = HALYARD_TRY(stage_out(part))) staged.push_back(std::move(fence));
  if (staged.empty()) return go_on();
  return when(HALYARD_TRY(join(staged)).get(), [this] { return go_on(); });
}

void completed(void* user, halyard_status_t status) noexcept {
  Pending& part = *static_cast<Pending*>(user);
  part.work->completed(part, Status::adopt(status));
}

}  // namespace

Result<> execute_collectives(const QueuePoint& point, CommandBuffer& commands,
                             std::span<const SlotEntry> entries, Reservation reservation) {
  const std::span<const CommandBuffer::RecordedCollective> collectives = commands.collectives();
  const auto work = make<CollectiveWork>(point, commands);
  HALYARD_TRY(work->charge.start(
      point.memory,
      block_bytes(sizeof(CollectiveWork)) + block_bytes(collectives.size() * sizeof(Pending)) +
          block_bytes(entries.size_bytes()) + block_bytes(entries.size() * sizeof(Ref<Allocation>)),
      "collectives"));
  work->entries.assign(entries.begin(), entries.end());
  for (const SlotEntry& entry : entries) work->kept.push_back(Ref<Allocation>::share(entry.allocation));
  work->parts.reserve(collectives.size());
  reservation.keep();  // a ticket that is drawn cannot be given back
  for (const CommandBuffer::RecordedCollective& recorded : collectives) {
    Pending part;
    part.work = work.get();
    part.recorded = &recorded;
    part.collective = recorded.collective;
    part.send = side_of(recorded.send, recorded.send_buffer, entries);
    part.receive = side_of(recorded.receive, recorded.receive_buffer, entries);
    part.ticket = part.collective.number = recorded.channel->draw_ticket();
    part.collective.stop = point.scope ? point.scope->stop_word() : nullptr;
    part.collective.timeout_ns = recorded.channel->provider().timeout();
    part.collective.completed = completed;
    work->parts.push_back(std::move(part));
  }
  for (Pending& part : work->parts) part.collective.user = &part;
  HALYARD_TRY(work->when(point.wait, [work = work.get()] { return work->go_on(); }));
  return work->result_for_submitter();
}

}  // namespace halyard::hal
