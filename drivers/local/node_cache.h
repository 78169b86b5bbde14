// NodeCache: the small objects that come and go with queue work (memory handles, semaphores, held work), kept
// when they are given back, so that warm queue work reaches neither malloc nor a lock. One for each instance:
// work may be finished, and its node given back, after its device has closed. Thread-safe.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "base/node_pool.h"

namespace halyard::local {

class NodeCache : public NodePool {
 public:
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
};

}  // namespace halyard::local
