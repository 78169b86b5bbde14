#include "device_memory.h"

#include <algorithm>

namespace halyard::local {

namespace {

constexpr uint32_t kAddedUsage =
    HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;
constexpr uint32_t kAddedType = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT;

// Every bit can be had, and what is only a wish is granted.
uint32_t granted_type(uint32_t wanted) {
  const uint32_t bits = wanted & ~uint32_t{HALYARD_MEMORY_OPTIMAL};
  return (bits ? bits : uint32_t{HALYARD_MEMORY_DEVICE_LOCAL}) | kAddedType;
}

std::unexpected<Status> not_there() {
  return fail(Code::FAILED_PRECONDITION,
              "the memory of a queue allocation is used before its alloca was done or after its dealloca; wait for the "
              "alloca's signal, and signal what the dealloca waits for after the last use");
}

}  // namespace

Result<> Heap::check_size(uint64_t size) const {
  if (size <= limit_) return {};
  return fail(Code::RESOURCE_EXHAUSTED, "no memory for {} bytes: the device has {}", size, limit_);
}

Result<uint8_t*> Heap::allocate(uint64_t size, bool host_local) {
  const std::lock_guard lock(mutex_);
  const uint64_t live = tallies_[0].live + tallies_[1].live;
  uint8_t* bytes = size <= limit_ - live ? cache_.take(size) : nullptr;
  if (!bytes)
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for {} bytes: the device has {} bytes, {} of them are in use", size,
                limit_, live);
  Tally& tally = tallies_[host_local];
  tally.allocated += size;
  tally.live += size;
  tally.peak = std::max(tally.peak, tally.live);
  return bytes;
}

void Heap::free(uint8_t* bytes, uint64_t size, bool host_local) {
  const std::lock_guard lock(mutex_);
  Tally& tally = tallies_[host_local];
  tally.freed += size;
  tally.live -= size;
  cache_.give(bytes, size);
}

void Heap::trim() {
  const std::lock_guard lock(mutex_);
  cache_.trim();
}

void Heap::statistics(halyard_memory_statistics_t& statistics) const {
  const std::lock_guard lock(mutex_);
  const auto& [device, host] = tallies_;
  statistics.host_bytes_live = host.live;
  statistics.host_bytes_peak = host.peak;
  statistics.host_bytes_allocated = host.allocated;
  statistics.host_bytes_freed = host.freed;
  statistics.device_bytes_live = device.live;
  statistics.device_bytes_peak = device.peak;
  statistics.device_bytes_allocated = device.allocated;
  statistics.device_bytes_freed = device.freed;
}

Memory::Memory(Heap& heap, const halyard_memory_request_t& request, bool transient)
    : heap_(&heap),
      size_(request.size),
      type_(granted_type(request.memory_type)),
      usage_(request.usage | kAddedUsage),
      transient_(transient) {}

Memory::Memory(uint8_t* bytes, const halyard_memory_request_t& request)
    : heap_(nullptr),
      size_(request.size),
      type_(granted_type(request.memory_type)),
      usage_(request.usage | kAddedUsage),
      transient_(false),
      bytes_(bytes) {}

Memory::~Memory() {
  if (block_) heap_->free(block_, size_, host_local());
}

bool Memory::host_local() const {
  return (type_ & HALYARD_MEMORY_HOST_LOCAL) == HALYARD_MEMORY_HOST_LOCAL;
}

void Memory::describe(halyard_memory_info_t& info) const {
  info.memory_type = type_;
  info.usage = usage_;
  info.size = size_;
}

Result<> Memory::commit() {
  block_ = HALYARD_TRY(heap_->allocate(size_, host_local()));
  bytes_.store(block_, std::memory_order_seq_cst);
  return {};
}

void Memory::decommit(const UseCount& uses) {
  if (!transient_ || !bytes_.exchange(nullptr, std::memory_order_seq_cst)) return;
  const bool used_elsewhere =
      uses.load(std::memory_order_seq_cst) > 1 || maps_.load(std::memory_order_seq_cst) > 0;
  if (!used_elsewhere) heap_->free(std::exchange(block_, nullptr), size_, host_local());
}

Result<uint8_t*> Memory::map() {
  maps_.fetch_add(1, std::memory_order_seq_cst);
  if (uint8_t* mapped = bytes()) return mapped;
  unmap();
  return not_there();
}

void Memory::unmap() { maps_.fetch_sub(1, std::memory_order_seq_cst); }

Result<std::span<uint8_t>> bytes_at(const Memory& memory, uint64_t offset, uint64_t length) {
  uint8_t* bytes = memory.bytes();
  if (!bytes) return not_there();
  return std::span<uint8_t>(bytes + offset, length);
}

}  // namespace halyard::local
