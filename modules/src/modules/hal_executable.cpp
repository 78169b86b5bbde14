// hal.executable.* and hal.ex.file.*: host bytes that devices execute or read. Specified by hal-module.md,
// "Executable and files".
#include <algorithm>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {

Result<Ref<hal::File>> file_from_memory(HalOptions& state, hal::Device&, uint64_t, uint32_t access,
                                        vm::Buffer& source, uint64_t offset, uint64_t length, uint32_t) {
  if (access & ~uint32_t{hal::kRead})
    return fail(Code::PERMISSION_DENIED, "expected access READ for a file over memory, found {}",
                hal::access_text(access));
  const std::span<uint8_t> bytes = HALYARD_TRY(host_range(source, offset, length));
  return hal::File::from_memory(bytes, hal::kRead, Ref<Object>::share(&source), state.memory.get());
}

Result<Ref<hal::Executable>> executable_create(HalOptions& state, vm::CallContext& call, hal::Device& device,
                                               uint64_t affinity, vm::Buffer& format, vm::Buffer& data,
                                               vm::Lenient<vm::Buffer> constants) {
  if (std::ranges::none_of(state.devices, [&](const auto& known) { return known.get() == &device; }))
    return fail(Code::NOT_FOUND, "device '{}' is not one of the {} devices of this context", device.uri(),
                state.devices.size());
  return load_executable(state.targets, call, device, affinity, format, data, constants.get(),
                         state.memory.get());
}

Result<Ref<hal::Executable>> load_executable(const TargetFeatures& targets, vm::CallContext& call,
                                             hal::Device& device, uint64_t affinity, vm::Buffer& format,
                                             vm::Buffer& data, const vm::Buffer* constants, Budget* memory) {
  // Copied, because it is read several times and the program may change it concurrently.
  const std::string format_name(text(format));
  HALYARD_TRY(targets.check(device, format_name));
  std::vector<uint32_t> values;
  if (constants) {
    if (constants->length() % sizeof(uint32_t) != 0)
      return fail(Code::INVALID_ARGUMENT, "expected constants of 4 bytes each, found {} bytes in all",
                  constants->length());
    values.resize(constants->length() / sizeof(uint32_t));
    if (!values.empty()) std::memcpy(values.data(), constants->data(), constants->length());
  }
  // Drivers require constant data, so data that the program or a device's work may write to is copied.
  Ref<Object> keep = Ref<Object>::share(&data);
  std::span<const uint8_t> bytes = data.span();
  if (!data.never_changes()) {
    Ref<Bytes> copy = Bytes::copy(bytes);
    bytes = copy->span();
    keep = std::move(copy);
  }
  return hal::Executable::create(Ref<hal::Device>::share(&device), affinity, format_name, bytes,
                                 std::move(keep), values,
                                 {.memory = memory,
                                  .subgroup_sizes = targets.subgroup_sizes(format_name),
                                  .stop = call.work_scope() ? call.work_scope()->stop_word() : nullptr});
}

Result<uint64_t> executable_lookup_function(hal::Executable& executable, vm::Buffer& name) {
  const uint64_t function = HALYARD_TRY(executable.lookup(text(name)));
  if (function == UINT64_MAX)
    return fail(Code::INTERNAL, "function '{}' of the executable has no number", text(name));
  return function;
}

}  // namespace halyard::modules::hal_functions
