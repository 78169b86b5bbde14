// The `hal` module: its table, types and state.
#include "modules/hal_module.h"

#include "modules/hal_functions.h"

namespace halyard::modules {

const ObjectType Event::kType = {"hal.event", [](Object*) {}};

namespace {

constexpr TableFunction kHalFunctions[] = {
#define HAL_FUNCTION(name, convention, since, until, handler) \
  table_function<&hal_functions::handler, kHalVersion>(name, convention, since, until),
#include "modules/hal_functions.inc"
#undef HAL_FUNCTION
};

}  // namespace

std::span<const TableFunction> hal_signatures() { return kHalFunctions; }

void add_hal_types(vm::TypeRegistry& types) {
  for (const ObjectType* type :
       {&hal::Allocator::kType, &hal::Buffer::kType, &hal::BufferView::kType, &hal::Channel::kType,
        &hal::CommandBuffer::kType, &hal::Device::kType, &Event::kType, &hal::Executable::kType,
        &hal::Fence::kType, &hal::File::kType, &hal::Semaphore::kType})
    types.add(type);
}

Ref<vm::NativeModule> create_hal_module(HalOptions options) {
  vm::NativeModule::Definition definition;
  definition.name = "hal";
  definition.version = kHalVersion;
  definition.exports = exports_of(kHalFunctions);
  // The state of the module in a context: the host's options, and the work in flight.
  definition.create_state = [options = std::move(options)]() -> Result<vm::NativeState> {
    auto mine = std::make_unique<HalOptions>(options);
    mine->open_channels = std::make_shared<hal::OpenChannels>(options.channels);
    mine->work = std::make_shared<WorkScopes>();
    return vm::NativeState{mine.release(), [](void* state) {
                             const std::unique_ptr<HalOptions> owned(static_cast<HalOptions*>(state));
                             owned->work->stop_on(owned->devices);
                             if (owned->tensors) owned->tensors->end();
                           }};
  };
  return vm::NativeModule::create(std::move(definition));
}

}  // namespace halyard::modules
