// NodeCache: the small objects that come and go with queue work (memory handles, held work), kept when they
// are given back, so that warm queue work does not reach malloc. One for each instance: work may be finished,
// and its node given back, after its device has closed. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "block_cache.h"

namespace halyard::local {

class NodeCache {
 public:
  // At least `size` bytes at a multiple of BlockCache::kAlignment. Throws std::bad_alloc.
  void* take(size_t size) {
    const std::lock_guard lock(mutex_);
    if (void* node = cache_.take(size)) return node;
    throw std::bad_alloc();
  }
  void give(void* node, size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    cache_.give(static_cast<uint8_t*>(node), size);
  }
  void trim() {
    const std::lock_guard lock(mutex_);
    cache_.trim();
  }

  template <typename T>
  void destroy(T* object) noexcept {
    object->~T();
    give(object, sizeof(T));
  }
  template <typename T>
  struct Destroy {
    NodeCache* nodes;
    void operator()(T* object) const noexcept { nodes->destroy(object); }
  };
  template <typename T>
  using Owned = std::unique_ptr<T, Destroy<T>>;
  // `T`'s constructor does not throw.
  template <typename T, typename... Args>
  Owned<T> make(Args&&... args) {
    return Owned<T>(new (take(sizeof(T))) T(std::forward<Args>(args)...), Destroy<T>{this});
  }

 private:
  std::mutex mutex_;
  BlockCache cache_;
};

}  // namespace halyard::local
