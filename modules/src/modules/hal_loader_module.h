// The native module `hal_loader`: kernels for programs without devices. They run in the call, on a local
// device: one from the host, or one that the module opens on first use. Specified by hal-module.md,
// "hal_inline and hal_loader".
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
  Ref<hal::DriverRegistry> drivers;         // opens it; may be null if there is a device
  std::vector<hal::DeviceOption> settings;  // its options
  TargetFeatures targets;                   // features stated by the modules of the context
  Ref<Budget> memory;                       // executables are charged to it; null: not charged
  Ref<hal::TensorTrace> tensors;            // of the dispatches; null: none
};

inline constexpr const char* kLoaderDevice = "local-sync";
// Whether this device can run kernels of hal_loader.
bool runs_loader_kernels(const hal::Device& device);

inline constexpr uint32_t kHalLoaderVersion = 1;

std::span<const TableFunction> hal_loader_signatures();

Ref<vm::NativeModule> create_hal_loader_module(HalLoaderOptions options);

}  // namespace halyard::modules
