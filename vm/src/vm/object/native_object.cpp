// Creates and destroys objects of native modules.
#include "vm/object/native_object.h"

namespace halyard::vm {

const ObjectType NativeType::kType = object_type<NativeType>("vm.native_type");

NativeType::NativeType(std::string name, Destroy destroy)
    : name_(std::move(name)), destroy_(destroy), of_objects_{name_.c_str(), &NativeObject::destroy} {}

Ref<NativeObject> NativeObject::create(NativeType& type, void* pointer) {
  return Ref<NativeObject>::adopt(new NativeObject(Ref<NativeType>::share(&type), pointer));
}

void NativeObject::destroy(Object* object) {
  auto* const doomed = static_cast<NativeObject*>(object);
  if (const NativeType::Destroy destroy = doomed->native_type_->destroy()) destroy(doomed->pointer_);
  delete doomed;
}

}  // namespace halyard::vm
