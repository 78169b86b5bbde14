// NodePool: reuses the memory of small objects that every call creates and destroys, so that warm work
// reaches neither malloc nor a lock. Each size has a few slots through which threads exchange nodes. Bursts
// of work need more nodes: those without a free slot go to a list with a lock, which is still much faster
// than the C library's aligned allocations, and are freed if that has enough. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

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
    if (void* const node = more_[index].pop()) {
      allow(node, index);
      return node;
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
      if (index > 0 && more_[index].push(node, kMoreBytes / bytes(index))) return;
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
      while (void* const node = more_[index].pop()) {
        allow(node, index);
        ::operator delete(node, kAligned);
      }
    }
  }

 private:
  static constexpr std::align_val_t kAligned{kAlignment};
  static constexpr size_t kClasses = kMaxKept / kAlignment + 1;
  static constexpr size_t kPlaces = 16;           // slots of each size
  static constexpr size_t kMoreBytes = 64 << 10;  // of the list of each size

  // A list through the first bytes of the nodes.
  class List {
   public:
    bool push(void* node, size_t most) noexcept {
      if (count_.load(std::memory_order_relaxed) >= most) return false;
      const std::lock_guard lock(mutex_);
      allow(node, 1);
      *static_cast<void**>(node) = std::exchange(first_, node);
      forbid(node, 1);
      count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return true;
    }
    void* pop() noexcept {
      if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
      const std::lock_guard lock(mutex_);
      void* const node = first_;
      if (!node) return nullptr;
      allow(node, 1);
      first_ = *static_cast<void**>(node);
      count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
      return node;
    }

   private:
    std::mutex mutex_;
    void* first_ = nullptr;
    std::atomic<size_t> count_ = 0;
  };

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
  std::array<List, kClasses> more_;
};

}  // namespace halyard
