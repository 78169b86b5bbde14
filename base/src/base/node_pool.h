// NodePool: reuses the memory of small objects that every call creates and destroys, so that warm work
// reaches neither malloc nor a lock. Each size has a few slots through which threads exchange nodes; a node
// without a free slot is freed. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/atomics.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace halyard {

class NodePool {
 public:
  static constexpr size_t kAlignment = 64;  // of every node, in bytes
  static constexpr size_t kMaxKept = 4096;  // bytes
  // The memory that a node takes from the process. To align a block, the C library allocates a larger one (by
  // the alignment and its smallest block), and can seldom use the remainder.
  static constexpr uint64_t footprint(size_t size) {
    constexpr uint64_t kMinBlock = 32;
    const uint64_t node = (size + kAlignment - 1) / kAlignment * kAlignment;
    return (node + 8 + 15) / 16 * 16 + kAlignment + kMinBlock;
  }

  NodePool() = default;
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;
  ~NodePool() { trim(); }

  // Returns at least `size` bytes. Throws std::bad_alloc.
  void* take(size_t size) {
    if (size > kMaxKept) return ::operator new(size, kAligned);
    const size_t index = size_class(size);
    for (std::atomic<void*>& place : places_[index]) {
      // Loads first, because an exchange takes much longer.
      if (!place.load(std::memory_order_relaxed)) continue;
      if (void* node = exchange(place, nullptr, std::memory_order_acquire)) {
        allow(node, index);
        return node;
      }
    }
    return ::operator new(bytes(index), kAligned);
  }
  // Takes back a node of take(size).
  void give(void* node, size_t size) noexcept {
    if (size <= kMaxKept) {
      const size_t index = size_class(size);
      forbid(node, index);
      for (std::atomic<void*>& place : places_[index]) {
        void* nothing = nullptr;
        if (!place.load(std::memory_order_relaxed) &&
            compare_exchange(place, nothing, node, std::memory_order_release))
          return;
      }
      allow(node, index);
    }
    ::operator delete(node, kAligned);
  }
  // Frees all kept nodes.
  void trim() noexcept {
    for (size_t index = 0; index < kClasses; ++index) {
      for (std::atomic<void*>& place : places_[index]) {
        void* node = place.exchange(nullptr, std::memory_order_acquire);
        if (!node) continue;
        allow(node, index);
        ::operator delete(node, kAligned);
      }
    }
  }

 private:
  static constexpr std::align_val_t kAligned{kAlignment};
  static constexpr size_t kClasses = kMaxKept / kAlignment + 1;
  static constexpr size_t kPlaces = 16;  // slots of each size

  static constexpr size_t size_class(size_t size) { return (size + kAlignment - 1) / kAlignment; }
  static constexpr size_t bytes(size_t index) { return index * kAlignment; }

  // Lets AddressSanitizer report any use of a kept node.
#if defined(__SANITIZE_ADDRESS__)
  static void forbid(void* node, size_t index) { ASAN_POISON_MEMORY_REGION(node, bytes(index)); }
  static void allow(void* node, size_t index) { ASAN_UNPOISON_MEMORY_REGION(node, bytes(index)); }
#else
  static void forbid(void*, size_t) {}
  static void allow(void*, size_t) {}
#endif

  std::array<std::array<std::atomic<void*>, kPlaces>, kClasses> places_ = {};
};

}  // namespace halyard
