// Allocates objects in the pool of their device, for types that every call creates and destroys.
//
//   class T : public Object { static const ObjectType kType; Device& device() const; Ref<U> leave(); ... };
//   const ObjectType T::kType = pooled_object_type<T>("hal.t");
//   Ref<T> t = make_pooled<T>(device, arguments...);    // `device` is t->device()
//
// leave() is called before the destructor and returns the reference that kept the device alive, because the
// device must outlive the node.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "base/object.h"
#include "hal/device/device.h"

namespace halyard::hal {

// Destroys an object without references.
template <typename T>
void destroy_pooled(T* object) noexcept {
  NodePool& nodes = object->device().nodes();
  if constexpr (std::is_base_of_v<Object, T>) {
    if (LiveObjects* live = object->device().live()) [[unlikely]]
      live->add(T::kType, -1);
  }
  const auto kept = object->leave();
  object->~T();
  nodes.give(object, sizeof(T));
}

template <typename T>
constexpr ObjectType pooled_object_type(const char* name) {
  return {name, [](Object* object) { destroy_pooled(static_cast<T*>(object)); }};
}

// `T`'s constructor does not throw. Throws std::bad_alloc.
template <typename T, typename... Args>
T* new_pooled(Device& device, Args&&... args) {
  return new (device.nodes().take(sizeof(T))) T(std::forward<Args>(args)...);
}

template <typename T, typename... Args>
Ref<T> make_pooled(Device& device, Args&&... args) {
  Ref<T> made = Ref<T>::adopt(new_pooled<T>(device, std::forward<Args>(args)...));
  if (LiveObjects* live = device.live()) [[unlikely]]
    live->add(T::kType, 1);
  return made;
}

}  // namespace halyard::hal
