// Allocation, ranges, permissions and host access of buffers.
#include "hal/device/buffer.h"

#include <fmt/format.h>

#include <cstring>

#include "hal/device/pooled.h"
#include "hal/driver/driver_memory.h"

namespace halyard::hal {

const ObjectType Allocation::kType = pooled_object_type<Allocation>("hal.allocation");
const ObjectType Buffer::kType = pooled_object_type<Buffer>("hal.buffer");

namespace {

bool lies_within(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

// A mapping for the duration of one access.
class Mapping {
 public:
  static Result<Mapping> map(const Allocation& allocation, uint32_t access, uint64_t offset,
                             uint64_t length) {
    const Device& device = allocation.device();
    const halyard_driver_table_t& table = device.table();
    if (!table.memory_map || !table.memory_unmap)
      return fail(Code::UNIMPLEMENTED,
                  "the driver of device '{}' cannot map memory (memory_map, memory_unmap)", device.uri());
    void* pointer = nullptr;
    if (Status status = Status::adopt(
            table.memory_map(device.handle(), allocation.memory, access, offset, length, &pointer)))
      return std::unexpected(std::move(status).note("while mapping a buffer for the host"));
    HALYARD_TRY(device.check_given(pointer, "memory_map"));
    return Mapping(allocation, pointer);
  }
  Mapping(Mapping&& other) noexcept
      : allocation_(other.allocation_), pointer_(std::exchange(other.pointer_, nullptr)) {}
  ~Mapping() {
    if (!pointer_) return;
    const Device& device = allocation_.device();
    device.table().memory_unmap(device.handle(), allocation_.memory);
  }
  void* pointer() const { return pointer_; }
  void* keep() && { return std::exchange(pointer_, nullptr); }  // it stays mapped

 private:
  Mapping(const Allocation& allocation, void* pointer) : allocation_(allocation), pointer_(pointer) {}

  const Allocation& allocation_;
  void* pointer_;
};

// Cache maintenance for memory that is not coherent: invalidate before reads, flush after writes.
using Synchronize = decltype(halyard_driver_table_t::memory_flush);
Result<> synchronize(const Allocation& allocation, Synchronize function, const char* name, uint64_t offset,
                     uint64_t length) {
  if (allocation.memory_type & HALYARD_MEMORY_HOST_COHERENT) return {};
  const Device& device = allocation.device();
  if (!function)
    return fail(Code::UNIMPLEMENTED, "memory of device '{}' is not coherent, and its driver lacks {}",
                device.uri(), name);
  return to_result(Status::adopt(function(device.handle(), allocation.memory, offset, length)));
}

}  // namespace

Result<> Allocation::charge_to(Budget* budget, uint64_t bytes) {
  constexpr uint64_t kObjects = NodePool::footprint(sizeof(Allocation)) + NodePool::footprint(sizeof(Buffer));
  return charge_.start(
      budget,
      saturating_add(kObjects, driver_memory::allocation(bytes, device_->properties().memory_alignment)),
      "a device buffer");
}

void Allocation::begin_log() {
  logged_ = device_->memory_log()->allocated(size, current_maker(), Tracer::now());
}

void Allocation::log_queued(bool is_dealloca, QueuedMemory operation) {
  MemoryLog& log = *device_->memory_log();
  if (is_dealloca)
    log.queue_dealloca(logged_, std::move(operation));
  else
    logged_ = log.queue_alloca(size, current_maker(), std::move(operation));
}

void Allocation::log_done(bool is_dealloca, bool has_run) {
  MemoryLog& log = *device_->memory_log();
  if (is_dealloca)
    log.dealloca_done(logged_, has_run, Tracer::now());
  else
    log.alloca_done(logged_, has_run, Tracer::now());
}

void Allocation::unmap() {
  device_->table().memory_unmap(device_->handle(), memory);
  mappings.fetch_sub(1);
}

Ref<Device> Allocation::leave() {
  if (logged_ != 0) [[unlikely]]
    device_->memory_log()->freed(logged_, Tracer::now());
  for (const Import& import : shared.imports)
    import.device->table().memory_free(import.device->handle(), import.memory);
  if (shared.mapped) device_->table().memory_unmap(device_->handle(), memory);
  if (memory) device_->table().memory_free(device_->handle(), memory);
  return std::move(device_);
}

Ref<Buffer> Buffer::create(Ref<Allocation> allocation) {
  const uint64_t size = allocation->size;
  return make_pooled<Buffer>(allocation->device(), std::move(allocation), uint64_t{0}, size);
}

Result<Ref<Buffer>> Buffer::allocate(Device& device, uint64_t affinity, uint32_t memory_type, uint32_t usage,
                                     uint64_t size, Budget* memory, uint64_t owner) {
  halyard_memory_request_t request = device.memory_request(affinity, memory_type, usage, size);
  request.owner = owner;
  const auto note = [&] { return fmt::format("while allocating {} bytes", size); };
  if (size > device.properties().maximum_allocation)
    return with_note<Ref<Buffer>>(
        fail(Code::RESOURCE_EXHAUSTED, "device '{}' allocates at most {} bytes at once", device.uri(),
             device.properties().maximum_allocation),
        note());
  halyard_memory_info_t info = {};
  info.struct_size = sizeof info;
  Ref<Allocation> allocation = make_pooled<Allocation>(device, Ref<Device>::share(&device));
  HALYARD_TRY(allocation->charge_to(memory, size));
  if (Status status = Status::adopt(
          device.table().memory_allocate(device.handle(), &request, &allocation->memory, &info))) {
    allocation->memory = nullptr;
    return std::unexpected(std::move(status).note(note()));
  }
  if (Result<> given = device.check_memory(request, allocation->memory, info, "memory_allocate"); !given)
    return std::unexpected(std::move(given.error()).note(note()));
  allocation->memory_type = info.memory_type & ~static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL);
  allocation->usage = info.usage;
  allocation->size = size;
  allocation->origin_affinity = request.affinity;
  allocation->log_memory();
  return create(std::move(allocation));
}

Result<Ref<Buffer>> Buffer::subspan(uint64_t offset, uint64_t length, Budget* memory) {
  if (length == kWholeLength && offset <= length_) length = length_ - offset;
  if (!lies_within(offset, length, length_)) {
    return std::unexpected(std::move(check_range(offset, length).error()).note("while making a subspan"));
  }
  if (offset == 0 && length == length_) return Ref<Buffer>::share(this);
  Ref<Buffer> part = make_pooled<Buffer>(device(), allocation_, offset_ + offset, length);
  HALYARD_TRY(part->charge_.start(memory, NodePool::footprint(sizeof(Buffer)), "a part of a buffer"));
  return part;
}

Result<> Buffer::check_range(uint64_t offset, uint64_t length) const {
  if (lies_within(offset, length, length_)) return {};
  return fail(Code::OUT_OF_RANGE,
              "expected a range within the {} bytes of the buffer, found {} bytes at offset {}", length_,
              length, offset);
}

Result<> Buffer::check_memory_type(uint32_t bits) const {
  if ((memory_type() & bits) == bits) return {};
  return fail(Code::PERMISSION_DENIED,
              "expected a buffer with memory of type {}, found {}; allocate it with that type",
              memory_type_text(bits), memory_type_text(memory_type()));
}

Result<> Buffer::check_usage(uint32_t bits) const {
  if ((usage() & bits) == bits) return {};
  return fail(Code::PERMISSION_DENIED,
              "expected a buffer with usage {}, found {}; allocate it with that usage", usage_text(bits),
              usage_text(usage()));
}

Result<> Buffer::check_access(uint32_t bits) const {
  if ((access() & bits) == bits) return {};
  return fail(Code::PERMISSION_DENIED, "expected a buffer that allows {}, found one that allows {}",
              access_text(bits), access_text(access()));
}

Result<> Buffer::read(uint64_t offset, void* target, uint64_t length) const {
  HALYARD_TRY(check_range(offset, length));
  HALYARD_TRY(check_access(kRead));
  HALYARD_TRY(check_memory_type(HALYARD_MEMORY_HOST_VISIBLE));
  HALYARD_TRY(check_usage(HALYARD_USAGE_MAPPING_SCOPED));
  if (length == 0) return {};
  const uint64_t begin = offset_ + offset;
  if (const auto copy = device().table().memory_read)
    return to_result(Status::adopt(copy(device().handle(), allocation_->memory, begin, length, target)));
  const Mapping mapping = HALYARD_TRY(Mapping::map(*allocation_, HALYARD_MAP_READ, begin, length));
  HALYARD_TRY(
      synchronize(*allocation_, device().table().memory_invalidate, "memory_invalidate", begin, length));
  std::memcpy(target, mapping.pointer(), length);
  return {};
}

Result<> Buffer::write(uint64_t offset, const void* source, uint64_t length) {
  HALYARD_TRY(check_range(offset, length));
  HALYARD_TRY(check_access(kDiscardWrite));
  HALYARD_TRY(check_memory_type(HALYARD_MEMORY_HOST_VISIBLE));
  HALYARD_TRY(check_usage(HALYARD_USAGE_MAPPING_SCOPED));
  if (length == 0) return {};
  const uint64_t begin = offset_ + offset;
  if (const auto copy = device().table().memory_write)
    return to_result(Status::adopt(copy(device().handle(), allocation_->memory, begin, length, source)));
  const Mapping mapping =
      HALYARD_TRY(Mapping::map(*allocation_, HALYARD_MAP_WRITE | HALYARD_MAP_DISCARD, begin, length));
  std::memcpy(mapping.pointer(), source, length);
  return synchronize(*allocation_, device().table().memory_flush, "memory_flush", begin, length);
}

Result<std::span<uint8_t>> Buffer::map() {
  HALYARD_TRY(check_access(kRead));
  HALYARD_TRY(check_memory_type(HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT));
  HALYARD_TRY(check_usage(HALYARD_USAGE_MAPPING_SCOPED));
  const uint32_t access = this->access() & kWrite ? HALYARD_MAP_READ | HALYARD_MAP_WRITE : HALYARD_MAP_READ;
  allocation_->mappings.fetch_add(1);  // first, so that a dealloca that is submitted now keeps the bytes
  Result<Mapping> mapping = Mapping::map(*allocation_, access, offset_, length_);
  if (!mapping) {
    allocation_->mappings.fetch_sub(1);
    return std::unexpected(std::move(mapping).error());
  }
  return std::span(static_cast<uint8_t*>(std::move(*mapping).keep()), length_);
}

}  // namespace halyard::hal
