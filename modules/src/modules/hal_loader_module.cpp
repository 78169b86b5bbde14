// The `hal_loader` module and its functions.
#include "modules/hal_loader_module.h"

#include <utility>

#include "hal/command/direct_dispatch.h"
#include "modules/hal_loader_functions.h"

namespace halyard::modules {

namespace hal_loader_functions {

namespace {

Result<Ref<hal::Device>> device_of(HalLoaderState& state) {
  const std::lock_guard lock(state.mutex);
  if (state.device) return state.device;
  if (!state.options.drivers)
    return fail(
        Code::FAILED_PRECONDITION,
        "hal_loader runs kernels on a device of kind '{}', but the context has none and was created without "
        "an instance that could open one; pass an instance to the context",
        kLoaderDevice);
  state.device =
      HALYARD_TRY(with_note(state.options.drivers->open_device(kLoaderDevice, state.options.settings),
                            "opening the device that runs the kernels of hal_loader"));
  return state.device;
}

}  // namespace

Result<int32_t> executable_query_support(HalLoaderState& state, vm::Buffer& format) {
  const Ref<hal::Device> device = HALYARD_TRY(device_of(state));
  const hal::Device::Grade grade = device->grade_executable(hal_functions::text(format), nullptr, 0);
  return grade.grade >= HALYARD_GRADE_LOADABLE;
}

Result<Ref<hal::Executable>> executable_load(vm::CallContext& call, HalLoaderState& state, vm::Buffer& format,
                                             vm::Buffer& data, vm::Buffer* constants) {
  const Ref<hal::Device> device = HALYARD_TRY(device_of(state));
  return hal_functions::load_executable(state.options.targets, call, *device, hal::kAnyQueue, format, data,
                                        constants, state.options.memory.get());
}

Result<> executable_dispatch(vm::CallContext& call, HalLoaderState& state, hal::Executable& executable,
                             uint64_t function, uint32_t x, uint32_t y, uint32_t z, Span<uint32_t> constants,
                             Bindings bindings) {
  if (bindings.size() > hal::kMaxBindings)
    return fail(Code::RESOURCE_EXHAUSTED, "expected at most {} bindings, found {}", hal::kMaxBindings,
                bindings.size());
  if (!runs_loader_kernels(executable.device()))
    return fail(
        Code::INVALID_ARGUMENT,
        "the executable was loaded for device '{}', which does not run work within the call; load it with "
        "hal_loader.executable.load",
        executable.device().uri());
  boost::container::small_vector<uint32_t, 32> values;
  hal_functions::collect(constants, values);
  hal::HostBinding ranges[hal::kMaxBindings];
  for (size_t i = 0; i < bindings.size(); ++i) {
    const auto [buffer, offset, length] = bindings[i];
    Result<std::span<uint8_t>> range = hal_functions::host_range(buffer, offset, length);
    if (!range) return std::unexpected(std::move(range.error()).note(fmt::format("binding[{}]", i)));
    ranges[i] = {*range, buffer.is_mutable(), !buffer.is_mutable() && buffer.may_be_written_by_devices()};
  }
  const std::span<const hal::HostBinding> given(ranges, bindings.size());
  if (const Ref<hal::TensorTrace>& tensors = state.options.tensors)
    return tensors->dispatch_now(executable, function, {x, y, z}, values, given, call.work_scope(),
                                 call.invocation().place());
  return hal::dispatch_now(executable, function, {x, y, z}, values, given, call.work_scope());
}

}  // namespace hal_loader_functions

namespace {

constexpr TableFunction kLoaderFunctions[] = {
#define HAL_FUNCTION(name, convention, since, until, handler) \
  table_function<&hal_loader_functions::handler, kHalLoaderVersion>(name, convention, since, until),
#include "modules/hal_loader_functions.inc"
#undef HAL_FUNCTION
};

}  // namespace

bool runs_loader_kernels(const hal::Device& device) { return device.id().starts_with("local-"); }

std::span<const TableFunction> hal_loader_signatures() { return kLoaderFunctions; }

Ref<vm::NativeModule> create_hal_loader_module(HalLoaderOptions options) {
  vm::NativeModule::Definition definition;
  definition.name = "hal_loader";
  definition.version = kHalLoaderVersion;
  definition.exports = exports_of(kLoaderFunctions);
  definition.create_state = [options = std::move(options)]() -> Result<vm::NativeState> {
    return vm::NativeState{new HalLoaderState(options),
                           [](void* state) { delete static_cast<HalLoaderState*>(state); }};
  };
  return vm::NativeModule::create(std::move(definition));
}

}  // namespace halyard::modules
