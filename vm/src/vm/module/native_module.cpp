#include "vm/module/native_module.h"

namespace halyard::vm {

const ObjectType NativeModule::kType = object_type<NativeModule>("vm.native_module");

NativeModule::NativeModule(Definition definition)
    : Module(&kType, ModuleKind::native), definition_(std::move(definition)) {
  name_ = definition_.name;
  version_ = definition_.version;
  imports_ = definition_.imports;
  dependencies_ = definition_.dependencies;
  attributes_ = definition_.attributes;
  exports_.reserve(definition_.exports.size());
  for (const NativeExport& function : definition_.exports) {
    exports_.push_back({.name = function.name,
                        .convention = function.convention,
                        .function = static_cast<uint32_t>(exports_.size()),
                        .attributes = function.attributes});
  }
}

Ref<NativeModule> NativeModule::create(Definition definition) {
  return make<NativeModule>(std::move(definition));
}

Result<NativeState> NativeModule::create_state() const {
  if (!definition_.create_state) return NativeState();
  return definition_.create_state();
}

}  // namespace halyard::vm
