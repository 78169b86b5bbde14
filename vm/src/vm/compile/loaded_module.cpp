#include "vm/compile/loaded_module.h"

#include <memory>
#include <utility>

namespace halyard::vm {

const ObjectType LoadedModule::kType = object_type<LoadedModule>("vm.module");

LoadedModule::LoadedModule() : BytecodeModule(&kType) {}
LoadedModule::~LoadedModule() = default;

Result<Ref<LoadedModule>> LoadedModule::load(Ref<Bytes> bytes, const TypeRegistry& types,
                                             const LoadOptions& options) {
  auto module = make<LoadedModule>();
  HALYARD_TRY(module->read(std::move(bytes), types));
  module->store_ = std::make_unique<CodeStore>(*module, options);
  if (options.verify_eagerly) HALYARD_TRY(module->store_->verify_all(options.stop));
  return module;
}

}  // namespace halyard::vm
