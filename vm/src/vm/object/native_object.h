// Object types that native modules define. Their objects hold a pointer of the module and its destroy
// function.
#pragma once

#include <string>
#include <utility>

#include "base/object.h"

namespace halyard::vm {

// Lives as long as an object, a registry or a module that uses it.
class NativeType final : public ObjectOf<NativeType> {
 public:
  static const ObjectType kType;

  using Destroy = void (*)(void* pointer);

  const ObjectType& of_objects() const { return of_objects_; }
  Destroy destroy() const { return destroy_; }

  NativeType(std::string name, Destroy destroy);

 private:
  std::string name_;
  Destroy destroy_;  // may be null
  ObjectType of_objects_;
};

class NativeObject final : public Object {
 public:
  static Ref<NativeObject> create(NativeType& type, void* pointer);
  // Null if the object is null or has another type.
  static NativeObject* of_type(const NativeType& type, Object* object) {
    return object && object->type() == &type.of_objects() ? static_cast<NativeObject*>(object) : nullptr;
  }
  static void destroy(Object* object);

  void* pointer() const { return pointer_; }

 private:
  NativeObject(Ref<NativeType> native_type, void* pointer)
      : Object(&native_type->of_objects()), native_type_(std::move(native_type)), pointer_(pointer) {}
  ~NativeObject() = default;

  Ref<NativeType> native_type_;
  void* pointer_;
};

}  // namespace halyard::vm
