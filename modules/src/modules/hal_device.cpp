// hal.devices.*, hal.device.allocator, hal.device.query.i64. Specified by hal-module.md, "Device" and
// "Devices".
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {

Result<Ref<hal::Allocator>> device_allocator(hal::Device& device) { return device.allocator(); }

Result<std::tuple<int32_t, int64_t>> device_query_i64(hal::Device& device, vm::Buffer& category,
                                                      vm::Buffer& key) {
  const hal::Device::Answer answer = device.query_i64(text(category), text(key));
  return std::tuple<int32_t, int64_t>(answer.known, answer.known ? answer.value : 0);
}

Result<int32_t> devices_count(HalOptions& state) { return static_cast<int32_t>(state.devices.size()); }

Result<Ref<hal::Device>> devices_get(HalOptions& state, uint32_t index) {
  return index < state.devices.size() ? state.devices[index] : nullptr;
}

}  // namespace halyard::modules::hal_functions
