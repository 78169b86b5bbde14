// Accounting, reuse and quarantine of blocks.
#include "heap.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/atomics.h"

namespace halyard::local {

namespace {

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
    return fail(
        Code::RESOURCE_EXHAUSTED,
        "no memory for {} bytes: the device has {} bytes, {} of them are in use; free memory or ask for less",
        size, limit_, live());
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

}  // namespace halyard::local
