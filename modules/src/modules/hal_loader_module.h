// The native module `hal_loader`: kernels for programs without devices. They run within the call, on a local
// device, which the host provides or the module opens on first use. Specified by hal-module.md, "hal_inline
// and hal_loader".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hal/capture/tensor_trace.h"
#include "hal/device/device.h"
#include "hal/registry/driver_registry.h"
#include "modules/function_table.h"
#include "modules/target_features.h"
#include "vm/module/native_module.h"

namespace halyard::modules {

struct HalLoaderOptions {
  Ref<hal::Device> device;                  // runs the kernels; null: a device of kLoaderDevice is opened
  Ref<hal::DriverRegistry> drivers;         // for opening the device; may be null if `device` is set
  std::vector<hal::DeviceOption> settings;  // options for opening the device
  TargetFeatures targets;                   // required by the modules of the context
  Ref<Budget> memory;                       // charged for executables; null: not charged
  Ref<hal::TensorTrace> tensors;            // traces dispatches; null: no trace
};

inline constexpr const char* kLoaderDevice = "local-sync";
// Whether this device can run kernels of hal_loader.
bool runs_loader_kernels(const hal::Device& device);

inline constexpr uint32_t kHalLoaderVersion = 1;

std::span<const TableFunction> hal_loader_signatures();

Ref<vm::NativeModule> create_hal_loader_module(HalLoaderOptions options);

}  // namespace halyard::modules
