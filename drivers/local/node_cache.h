// NodeCache: recycles the small objects of queue work (memory handles, semaphores, held work), so warm queue
// work takes no lock and does not call malloc. Each instance has one cache, because work may finish, and free
// its node, after its device was closed. Thread-safe.
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
  // `T`'s constructor must not throw.
  template <typename T, typename... Args>
  Owned<T> make(Args&&... args) {
    return Owned<T>(new (take(sizeof(T))) T(std::forward<Args>(args)...), Destroy<T>{this});
  }
};

}  // namespace halyard::local
