// The native module `hal_loader`: kernels for programs without devices. They run within the call, on a local
// device, which the host provides or the module opens on first use. Specified by hal-module.md, "hal_inline
// and hal_loader".
#pragma once

#include <cstdint>
#include <span>

#include "hal/device/device.h"
#include "modules/function_table.h"
#include "modules/module_options.h"
#include "vm/module/native_module.h"

namespace halyard::modules {

inline constexpr const char* kLoaderDevice = "local-sync";
// Whether this device can run kernels of hal_loader.
bool runs_loader_kernels(const hal::Device& device);

inline constexpr uint32_t kHalLoaderVersion = 1;

std::span<const TableFunction> hal_loader_signatures();

Ref<vm::NativeModule> create_hal_loader_module(HalLoaderOptions options);

}  // namespace halyard::modules
