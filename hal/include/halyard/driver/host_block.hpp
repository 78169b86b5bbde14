// Of the kit (halyard/driver.hpp): memory of a device that computes in host memory, allocated or imported.
#ifndef HALYARD_DRIVER_HOST_BLOCK_HPP_
#define HALYARD_DRIVER_HOST_BLOCK_HPP_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "halyard/driver/device.hpp"
#include "halyard/driver/host_memory.hpp"

namespace halyard::kit {

// The statistics of a device's memory, all of which counts as host memory [R76]. Any thread.
class MemoryTally {
 public:
  void count(uint64_t allocated, uint64_t freed) {
    const std::lock_guard lock(mutex_);
    now_.host_bytes_allocated += allocated;
    now_.host_bytes_freed += freed;
    now_.host_bytes_live += allocated - freed;
    now_.host_bytes_peak = std::max(now_.host_bytes_peak, now_.host_bytes_live);
  }
  halyard_memory_statistics_t now() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }

 private:
  mutable std::mutex mutex_;
  halyard_memory_statistics_t now_ = {};
};

// Allocated bytes exist from commit() to decommit() and, if they are mapped then, until the last unmap().
// Imported bytes are the host's.
class HostBlock final : public Memory {
 public:
  static constexpr uint64_t kAlignment = 64;  // bytes

  HostBlock(MemoryTally& tally, const halyard_memory_request_t& request)
      : tally_(tally), size_(request.size), is_cleared_(owner_of(request) != HALYARD_OWNER_WRITES_ALL) {}
  // `access`: HALYARD_MAP_*.
  HostBlock(MemoryTally& tally, const halyard_memory_request_t& request, uint8_t* imported, uint32_t access)
      : tally_(tally), size_(request.size), imported_(imported), access_(access), bytes_(imported) {}
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  ~HostBlock() override {
    give_back(take());
    give_back(mapped_);
  }

  Result<> commit() override {
    bytes_ = HALYARD_KIT_TRY(allocate());
    if (is_cleared_) std::memset(bytes_, 0, size_);  // no bytes of earlier owners [R78]
    return {};
  }
  Result<> decommit() override {
    const std::lock_guard lock(mutex_);
    uint8_t* const bytes = take();
    if (mappings_ == 0) {
      give_back(bytes);
    } else {
      mapped_ = bytes;
    }
    return {};
  }
  Result<uint8_t*> map(uint32_t /*access*/, uint64_t offset, uint64_t /*length*/) override {
    const std::lock_guard lock(mutex_);
    uint8_t* const mapped = HALYARD_KIT_TRY(bytes());
    ++mappings_;
    return mapped + offset;
  }
  void unmap() override {
    const std::lock_guard lock(mutex_);
    if (--mappings_ == 0) give_back(std::exchange(mapped_, nullptr));
  }
  Result<uint8_t*> bytes() override {
    if (uint8_t* const bytes = bytes_) return bytes;
    return Failure{HALYARD_FAILED_PRECONDITION,
                   "memory is used before its alloca or after its dealloca; wait for alloca's signal"};
  }
  // Imported bytes may be on read-only pages. Then the first writer gets a copy, which replaces them for all
  // later users of this memory [R77].
  Result<uint8_t*> bytes_to_write() override {
    uint8_t* original = imported_;
    if (!original || bytes_ != original || (access_ & (HALYARD_MAP_WRITE | HALYARD_MAP_PRIVATE)))
      return bytes();
    uint8_t* const copy = HALYARD_KIT_TRY(allocate());
    std::memcpy(copy, original, size_);
    if (bytes_.compare_exchange_strong(original, copy)) return copy;
    free(copy);  // another thread was faster
    return bytes();
  }

 private:
  Result<uint8_t*> allocate() {
    // At least one unit, because memory of 0 bytes has an address too [R71].
    void* const bytes = std::aligned_alloc(kAlignment, (size_ / kAlignment + 1) * kAlignment);
    if (!bytes)
      return Failure{HALYARD_RESOURCE_EXHAUSTED, "the process cannot get " + std::to_string(size_) +
                                                     " bytes; free memory or ask for less"};
    tally_.count(size_, 0);
    return static_cast<uint8_t*>(bytes);
  }
  void free(uint8_t* bytes) {
    std::free(bytes);
    tally_.count(0, size_);
  }
  // The allocated bytes, which this block has no longer; null: none.
  uint8_t* take() {
    uint8_t* const bytes = bytes_.exchange(imported_);
    return bytes == imported_ ? nullptr : bytes;
  }
  void give_back(uint8_t* bytes) {
    if (bytes) free(bytes);
  }

  MemoryTally& tally_;
  const uint64_t size_;
  uint8_t* const imported_ = nullptr;
  const uint32_t access_ = HALYARD_MAP_READ | HALYARD_MAP_WRITE;
  const bool is_cleared_ = false;
  std::atomic<uint8_t*> bytes_{nullptr};  // the host may map it while the device works
  std::mutex mutex_;                      // guards the members below
  uint64_t mappings_ = 0;
  uint8_t* mapped_ = nullptr;  // bytes that were mapped at their dealloca
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_HOST_BLOCK_HPP_
