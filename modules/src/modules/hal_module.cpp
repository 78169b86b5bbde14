// The `hal` module put together: its table, its types, its state.
#include "modules/hal_module.h"

#include "modules/hal_functions.h"

namespace halyard::modules {

const ObjectType Channel::kType = {"hal.channel", [](Object*) {}};
const ObjectType Event::kType = {"hal.event", [](Object*) {}};

#define HAL_FUNCTION(name, convention, since, until, handler)                               \
  static_assert(std::string_view(vm::convention_of<&hal_functions::handler>) == convention, \
                name ": the parameters of " #handler " are not those of " convention);      \
  static_assert(since <= until && until <= kHalVersion, name ": versions");
#include "modules/hal_functions.inc"
#undef HAL_FUNCTION

std::span<const HalSignature> hal_signatures() {
  static constexpr HalSignature kSignatures[] = {
#define HAL_FUNCTION(name, convention, since, until, handler) {name, convention, since, until},
#include "modules/hal_functions.inc"
#undef HAL_FUNCTION
  };
  return kSignatures;
}

void add_hal_types(vm::TypeRegistry& types) {
  for (const ObjectType* type :
       {&hal::Allocator::kType, &hal::Buffer::kType, &hal::BufferView::kType, &Channel::kType,
        &hal::CommandBuffer::kType, &hal::Device::kType, &Event::kType, &hal::Executable::kType,
        &hal::Fence::kType, &hal::File::kType, &hal::Semaphore::kType})
    types.add(type);
}

Ref<vm::NativeModule> create_hal_module(HalOptions options) {
  vm::NativeModule::Definition definition;
  definition.name = "hal";
  definition.version = kHalVersion;
  definition.exports = {
#define HAL_FUNCTION(name, convention, since, until, handler) \
  {name, convention, vm::bind<&hal_functions::handler>},
#include "modules/hal_functions.inc"
#undef HAL_FUNCTION
  };
  // The state of the module in a context: what the host gave, which nothing changes.
  definition.create_state = [options = std::move(options)]() -> Result<vm::NativeState> {
    return vm::NativeState{new HalOptions(options),
                           [](void* state) { delete static_cast<HalOptions*>(state); }};
  };
  return vm::NativeModule::create(std::move(definition));
}

}  // namespace halyard::modules
