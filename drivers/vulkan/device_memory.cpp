// Statistics, and the lifetime of the bytes.
#include "device_memory.h"

#include <algorithm>

#include "halyard/driver/host_memory.hpp"

namespace halyard::vulkan {

namespace {

constexpr uint32_t kUsages = HALYARD_USAGE_TRANSFER | HALYARD_USAGE_INDIRECT_PARAMETERS |
                             HALYARD_USAGE_UNIFORM_READ | HALYARD_USAGE_STORAGE;
constexpr uint32_t kMappedUsages =
    HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;

}  // namespace

void MemoryTally::add(uint64_t bytes, bool host_local) {
  const std::lock_guard lock(mutex_);
  Side& side = sides_[host_local];
  side.allocated += bytes;
  side.live += bytes;
  side.peak = std::max(side.peak, side.live);
}

void MemoryTally::remove(uint64_t bytes, bool host_local) {
  const std::lock_guard lock(mutex_);
  Side& side = sides_[host_local];
  side.freed += bytes;
  side.live -= bytes;
}

halyard_memory_statistics_t MemoryTally::statistics() const {
  const std::lock_guard lock(mutex_);
  halyard_memory_statistics_t statistics = {};
  const auto& [device, host] = sides_;
  statistics.host_bytes_live = host.live;
  statistics.host_bytes_peak = host.peak;
  statistics.host_bytes_allocated = host.allocated;
  statistics.host_bytes_freed = host.freed;
  statistics.device_bytes_live = device.live;
  statistics.device_bytes_peak = device.peak;
  statistics.device_bytes_allocated = device.allocated;
  statistics.device_bytes_freed = device.freed;
  return statistics;
}

Result<std::unique_ptr<halyard_driver_memory>> Memory::create(Heap& heap, MemoryTally& tally,
                                                              const halyard_memory_request_t& request) {
  const unsigned kind = HALYARD_KIT_TRY(heap.kind_for(request.memory_type));
  auto memory = std::make_unique<halyard_driver_memory>(heap, tally);
  memory->size_ = request.size;
  memory->owner_ = kit::owner_of(request);
  memory->kind_ = kind;
  memory->type_ = heap.bits_of(kind, request.memory_type);
  memory->usage_ = request.usage | kUsages;
  if (memory->type_ & HALYARD_MEMORY_HOST_VISIBLE) memory->usage_ |= kMappedUsages;
  return memory;
}

Result<std::unique_ptr<halyard_driver_memory>> Memory::import(Heap& heap, MemoryTally& tally,
                                                              const halyard_memory_request_t& request,
                                                              uint8_t* bytes, bool writable) {
  constexpr uint32_t kGiven = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT;
  auto memory = std::make_unique<halyard_driver_memory>(heap, tally);
  memory->size_ = request.size;
  if (writable) {
    memory->block_ = HALYARD_KIT_TRY(heap.import(bytes, request.size));
    memory->imported_ = bytes;
  } else {
    const unsigned kind = HALYARD_KIT_TRY(heap.kind_for(kGiven));
    Block* block = HALYARD_KIT_TRY(heap.allocate(kind, request.size, HALYARD_OWNER_WRITES_ALL));
    memory->block_ = block;
    std::copy_n(bytes, request.size, block->mapped());
  }
  memory->kind_ = memory->block_.load()->kind;
  memory->type_ = heap.bits_of(memory->kind_, request.memory_type) | kGiven;
  memory->usage_ = request.usage | kUsages | kMappedUsages;
  if (!(request.memory_type & HALYARD_MEMORY_OPTIMAL) && (request.memory_type & ~memory->type_))
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "imported host memory has the type bits 0x{:x} on this device, expected 0x{:x}; ask for fewer, or "
        "with OPTIMAL (0x1)",
        memory->type_, request.memory_type);
  return memory;
}

Result<std::unique_ptr<halyard_driver_memory>> Memory::import_fd(Heap& heap, MemoryTally& tally,
                                                                 const halyard_memory_request_t& request,
                                                                 const halyard_external_memory_t& external) {
  if (!(external.access & HALYARD_MAP_WRITE))
    return fail(
        HALYARD_UNIMPLEMENTED,
        "memory of a descriptor cannot be imported read-only: kernels may write to it; import it with "
        "write access");
  auto memory = HALYARD_KIT_TRY(create(heap, tally, request));
  memory->block_ = HALYARD_KIT_TRY(heap.import_fd(external.fd, memory->kind_, request.size, external.size));
  memory->is_descriptor_ = true;
  return memory;
}

Memory::~Memory() {
  Block* block = block_.load(std::memory_order_acquire);
  if (!block) return;
  if (imported_ || is_descriptor_) {
    heap_.free_import(block);
  } else {
    heap_.free(block);
    if (counted_) tally_.remove(size_, host_local());
  }
}

Result<> Memory::commit() {
  Block* block = HALYARD_KIT_TRY(heap_.allocate(kind_, size_, owner_));
  tally_.add(size_, host_local());
  counted_ = true;
  block_.store(block, std::memory_order_release);
  return {};
}

Result<const Block*> Memory::block() const {
  if (const Block* block = block_.load(std::memory_order_acquire)) return block;
  return fail(
      HALYARD_FAILED_PRECONDITION,
      "the memory of a queue allocation is used before its alloca has run; wait for the alloca's signal");
}

Result<uint8_t*> Memory::bytes() const {
  const Block* block = HALYARD_KIT_TRY(this->block());
  if (imported_) return imported_;
  if (uint8_t* mapped = block->mapped()) return mapped;
  return fail(
      HALYARD_FAILED_PRECONDITION,
      "the host cannot see this memory; allocate it with HOST_VISIBLE (0x2), or copy it to memory that "
      "has it");
}

Result<> Memory::flush(uint64_t offset, uint64_t length) {
  return heap_.flush(*HALYARD_KIT_TRY(block()), offset, length);
}

Result<> Memory::invalidate(uint64_t offset, uint64_t length) {
  return heap_.invalidate(*HALYARD_KIT_TRY(block()), offset, length);
}

Result<halyard_external_memory_t> Memory::export_to(uint32_t kind) const {
  HALYARD_KIT_TRY(kit::check_export(kind));
  uint8_t* const bytes = HALYARD_KIT_TRY(this->bytes());
  if (!coherent())
    return fail(HALYARD_UNIMPLEMENTED,
                "cannot export memory that is not host coherent; allocate it with HOST_COHERENT (0x4)");
  return kit::host_allocation(bytes, size_, HALYARD_MAP_READ | HALYARD_MAP_WRITE);
}

void Memory::describe(halyard_memory_info_t& info) const {
  info.memory_type = type_;
  info.usage = usage_;
  info.size = size_;
}

}  // namespace halyard::vulkan
