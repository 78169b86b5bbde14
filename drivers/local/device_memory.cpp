// Accounting, memory types, and the lifetime of the bytes.
#include "device_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/atomics.h"
#include "halyard/driver/host_memory.hpp"

namespace halyard::local {

namespace {

constexpr uint32_t kAddedUsage = HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED |
                                 HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;
constexpr uint32_t kAddedType = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT;

// The type bits that this driver supports.
constexpr uint32_t kEveryType =
    HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL;

// Grants all wanted properties, because all of them are available.
uint32_t granted_type(uint32_t wanted) {
  const uint32_t bits = wanted & kEveryType;
  return (bits ? bits : uint32_t{HALYARD_MEMORY_DEVICE_LOCAL}) | kAddedType;
}

std::unexpected<Status> not_there() {
  return fail(
      Code::FAILED_PRECONDITION,
      "the memory of a queue allocation is used before its alloca has run; wait for the alloca's signal");
}

std::unexpected<Status> not_there_any_more() {
  return fail(
      Code::FAILED_PRECONDITION,
      "the memory of a queue allocation is used after its dealloca; make the dealloca wait for the last "
      "use");
}

void raise(std::atomic<uint64_t>& peak, uint64_t value) {
  uint64_t before = peak.load(std::memory_order_relaxed);
  while (value > before && !compare_exchange(peak, before, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

// Returns false if the size would exceed the limit.
bool Heap::charge(Tally& tally, uint64_t size) {
  if (size > limit_) return false;
  fetch_add(tally.allocated, size, std::memory_order_relaxed);
  const uint64_t all = live();
  if (all > limit_) {
    fetch_sub(tally.allocated, size, std::memory_order_relaxed);
    return false;
  }
  raise(tally.peak, tally.live());
  raise(peak_, all);
  return true;
}

uint8_t* Heap::take(uint64_t size, uint64_t owner) {
  uint8_t* bytes = cache_.take_kept(size, owner);
  if (!bytes) bytes = take_new(size);
  if (bytes || !validates_) return bytes;
  const std::lock_guard lock(mutex_);
  if (quarantined_ == 0) return nullptr;
  release_quarantined(0);
  return take_new(size);
}

// Trims the cache when it is too large, because a program that uses many different sizes would leave cached
// blocks of each size.
uint8_t* Heap::take_new(uint64_t size) {
  if (cache_.kept_bytes() + live() > peak_.load(std::memory_order_relaxed) + kMaxIdle) cache_.trim();
  return cache_.allocate(size);
}

Result<uint8_t*> Heap::allocate(uint64_t size, bool host_local, uint64_t owner) {
  Tally& tally = tallies_[host_local];
  const bool fits = charge(tally, size);
  uint8_t* bytes = fits ? take(size, owner) : nullptr;
  if (!bytes) {
    if (fits) fetch_sub(tally.allocated, size, std::memory_order_relaxed);
    return fail(Code::RESOURCE_EXHAUSTED,
                "no memory for {} bytes: the device has {} bytes, {} of them are in use", size, limit_,
                live());
  }
  if (validates_) std::memset(bytes, kFreshPattern, size);
  return bytes;
}

void Heap::free(uint8_t* bytes, uint64_t size, bool host_local, uint64_t owner) {
  fetch_add(tallies_[host_local].freed, size, std::memory_order_release);
  if (!validates_) return cache_.give(bytes, size, owner);
  std::memset(bytes, kFreedPattern, size);
  const std::lock_guard lock(mutex_);
  try {
    quarantine_.push_back({bytes, size, owner});
  } catch (const std::bad_alloc&) {  // out of memory: skip the quarantine
    return cache_.give(bytes, size, owner);
  }
  quarantined_ += std::max(size, BlockCache::kAlignment);  // empty allocations count too
  release_quarantined(kMaxQuarantined);
}

void Heap::release_quarantined(uint64_t most) {
  for (; quarantined_ > most; quarantine_.pop_front()) {
    const Block& oldest = quarantine_.front();
    quarantined_ -= std::max(oldest.size, BlockCache::kAlignment);
    cache_.give(oldest.bytes, oldest.size, oldest.owner);
  }
}

void Heap::trim() {
  const std::lock_guard lock(mutex_);
  release_quarantined(0);
  cache_.trim();
}

halyard_memory_statistics_t Heap::statistics() const {
  halyard_memory_statistics_t statistics = {};
  const auto& [device, host] = tallies_;
  statistics.host_bytes_live = host.live();
  statistics.host_bytes_peak = host.peak;
  statistics.host_bytes_allocated = host.allocated;
  statistics.host_bytes_freed = host.freed;
  statistics.device_bytes_live = device.live();
  statistics.device_bytes_peak = device.peak;
  statistics.device_bytes_allocated = device.allocated;
  statistics.device_bytes_freed = device.freed;
  return statistics;
}

Result<> check_type(const halyard_memory_request_t& request) {
  const uint32_t unknown = request.memory_type & ~(kEveryType | HALYARD_MEMORY_OPTIMAL);
  if (unknown == 0 || (request.memory_type & HALYARD_MEMORY_OPTIMAL)) return {};
  return fail(Code::INVALID_ARGUMENT,
              "no memory has the type bits 0x{:x}; ask without, or with OPTIMAL (0x1)", unknown);
}

Memory::Memory(Heap& heap, const halyard_memory_request_t& request, bool queue_ordered)
    : heap_(heap),
      size_(request.size),
      type_(granted_type(request.memory_type)),
      usage_(request.usage | kAddedUsage),
      queue_ordered_(queue_ordered),
      owner_(kit::owner_of(request)) {}

Memory::Memory(Heap& heap, uint8_t* bytes, uint32_t access, const halyard_memory_request_t& request)
    : heap_(heap),
      imported_(bytes),
      size_(request.size),
      type_(granted_type(request.memory_type)),
      usage_(request.usage | kAddedUsage),
      access_(access),
      bytes_(bytes) {}

Memory::~Memory() {
  uint8_t* bytes = bytes_.load(std::memory_order_acquire);
  if (bytes && bytes != imported_) heap_.free(bytes, size_, host_local(), owner_);
}

bool Memory::host_local() const { return (type_ & HALYARD_MEMORY_HOST_LOCAL) == HALYARD_MEMORY_HOST_LOCAL; }

Result<halyard_external_memory_t> Memory::export_to(uint32_t kind) const {
  HALYARD_TRY(from_kit(kit::check_export(kind)));
  const uint32_t access = is_constant() ? HALYARD_MAP_READ : HALYARD_MAP_READ | HALYARD_MAP_WRITE;
  return kit::host_allocation(HALYARD_TRY(bytes()), size_, access);
}

void Memory::describe(halyard_memory_info_t& info) const {
  info.memory_type = type_;
  info.usage = usage_;
  info.size = size_;
}

Result<> Memory::commit() {
  bytes_.store(HALYARD_TRY(heap_.allocate(size_, host_local(), owner_)), std::memory_order_release);
  return {};
}

// The memory keeps its bytes, so a use that races with the dealloca at worst reads the pattern.
Result<> Memory::dealloca() {
  if (!queue_ordered_ || !heap_.validates()) return {};
  uint8_t* bytes = HALYARD_TRY(this->bytes());
  deallocated_.store(true, std::memory_order_release);
  std::memset(bytes, Heap::kFreedPattern, size_);
  return {};
}

// The failure for bytes that do not exist yet, or no longer.
Result<uint8_t*> Memory::no_bytes(const uint8_t* bytes) {
  if (!bytes) return not_there();
  return not_there_any_more();
}

Result<uint8_t*> Memory::constant_to_write() {
  uint8_t* bytes = HALYARD_TRY(this->bytes());
  const bool is_copy = bytes != imported_;
  return is_copy || (access_ & HALYARD_MAP_PRIVATE) ? bytes : copy_constant(bytes);
}

// If threads race, one thread makes the copy and all threads use it.
Result<uint8_t*> Memory::copy_constant(uint8_t* original) {
  uint8_t* const copy = HALYARD_TRY(heap_.allocate(size_, host_local(), owner_));
  if (size_ != 0) std::memcpy(copy, original, size_);
  uint8_t* current = original;
  if (bytes_.compare_exchange_strong(current, copy, std::memory_order_acq_rel)) return copy;
  heap_.free(copy, size_, host_local(), owner_);
  return current;
}

Result<std::span<uint8_t>> bytes_at(const Memory& memory, uint64_t offset, uint64_t length) {
  return std::span<uint8_t>(HALYARD_TRY(memory.bytes()) + offset, length);
}

}  // namespace halyard::local
