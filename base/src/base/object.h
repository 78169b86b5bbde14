// Object: the common header of all shared objects on the host, with a type pointer and an atomic reference
// count. Ref<T>: the smart pointer for objects. A ref register of the VM is an Object*.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/atomics.h"

namespace halyard {

class Object;

// The type of an object; one instance for each type. Two refs have the same type if and only if these
// pointers are equal.
struct ObjectType {
  const char* name;          // as in a module's type table without '!': "hal.buffer"
  void (*destroy)(Object*);  // called on the thread that drops the last reference
  bool is_part = false;      // see Object::Part
};

class Object {
 public:
  explicit Object(const ObjectType* type) : type_(type) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  const ObjectType* type() const { return type_; }
  void retain() { fetch_add(references_, 1, std::memory_order_relaxed, is_alone()); }
  void release() {
    // If the count is 1, this is the only reference and no thread can add one. A load is much faster than a
    // decrement.
    if ((unique() && !type_->is_part) ||
        fetch_sub(references_, 1, std::memory_order_acq_rel, is_alone()) == 1)
      type_->destroy(this);
  }
  // Only one thread at a time refers to the object from now on, so counting needs no atomic instructions. The
  // object must not be a part.
  void confine() { is_confined_ = true; }
  uint32_t references() const { return references_.load(std::memory_order_acquire); }
  bool unique() const { return references() == 1; }

 protected:
  // A part of a larger object. It starts without references. While it has references, it keeps the whole
  // object alive; its `destroy` releases the whole. retain_first() returns whether the part had no reference.
  struct Part {};
  Object(const ObjectType* type, Part) : type_(type), references_(0) {}
  bool retain_first() { return fetch_add(references_, 1, std::memory_order_relaxed) == 0; }
  ~Object() = default;

 private:
  // Whether no other thread counts at the same time.
  bool is_alone() const { return is_confined_ || single_threaded(); }

  const ObjectType* type_;
  std::atomic<uint32_t> references_{1};
  bool is_confined_ = false;
};

inline void retain(Object* object) {
  if (object) object->retain();
}
inline void release(Object* object) {
  if (object) object->release();
}

// Base of a concrete type T, which declares `static const ObjectType kType;` and defines it with
// object_type<T>("name").
template <typename T>
class ObjectOf : public Object {
 protected:
  ObjectOf() : Object(&T::kType) {}
};

template <typename T>
constexpr ObjectType object_type(const char* name) {
  return {name, [](Object* object) { delete static_cast<T*>(object); }};
}

// Shared ownership of an object; may be null.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(const Ref& other) : object_(other.object_) { halyard::retain(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& other) : object_(other.get()) {
    halyard::retain(object_);
  }
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& other) noexcept : object_(other.detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { halyard::release(object_); }

  static Ref adopt(T* object) {  // takes ownership of the caller's reference
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref share(T* object) {  // adds a reference
    halyard::retain(object);
    return adopt(object);
  }
  [[nodiscard]] T* detach() { return std::exchange(object_, nullptr); }  // passes ownership to the caller

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make(Args&&... args) {
  return Ref<T>::adopt(new T(std::forward<Args>(args)...));
}

// Returns the object as a T, borrowed; null if it is null or of another type.
template <typename T>
T* cast(Object* object) {
  return object && object->type() == &T::kType ? static_cast<T*>(object) : nullptr;
}

}  // namespace halyard
