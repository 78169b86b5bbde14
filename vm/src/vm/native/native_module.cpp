// Native modules, and the messages of bind.h about wrong refs.
#include "vm/native/native_module.h"

#include "vm/native/bind.h"

namespace halyard::vm {

const ObjectType NativeModule::kType = object_type<NativeModule>("vm.native_module");

NativeModule::NativeModule(Definition definition)
    : Module(&kType, ModuleKind::native), definition_(std::move(definition)) {
  name_ = definition_.name;
  version_ = definition_.version;
  exports_.reserve(definition_.exports.size());
  for (const NativeExport& function : definition_.exports) {
    exports_.push_back({.name = function.name,
                        .convention = function.convention,
                        .function = static_cast<uint32_t>(exports_.size()),
                        .attributes = {}});
  }
}

Ref<NativeModule> NativeModule::create(Definition definition) {
  return make<NativeModule>(std::move(definition));
}

Result<NativeState> NativeModule::create_state() const {
  if (!definition_.create_state) return NativeState();
  return definition_.create_state();
}

namespace internal {

Status null_ref() { return Status(Code::INVALID_ARGUMENT, "expected a ref, found null"); }

Status wrong_ref(const ObjectType* expected, const Object* found) {
  return Status(Code::INVALID_ARGUMENT,
                fmt::format("expected a {}, found {}", expected->name, found->type()->name));
}

}  // namespace internal

}  // namespace halyard::vm
