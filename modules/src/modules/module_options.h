// The options of the modules `hal`, `hal_inline` and `hal_loader`, which the host sets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "hal/capture/capture.h"
#include "hal/capture/tensor_trace.h"
#include "hal/channel/open_channels.h"
#include "hal/device/device.h"
#include "hal/registry/driver_registry.h"
#include "hal/view/buffer_view.h"
#include "modules/target_features.h"
#include "modules/work_scopes.h"

namespace halyard::modules {

// The sink of hal.buffer_view.trace; if empty, views are neither traced nor checked. Called on the thread of
// the invocation.
using TraceSink = std::function<void(std::string_view key, std::span<hal::BufferView* const> views)>;

struct HalOptions {
  std::vector<Ref<hal::Device>> devices;  // in the order that hal.devices.get uses
  TraceSink trace;
  // The policy of hal.allocator.select. If set, the index of the preferred device in `devices`; if that
  // device is no candidate, the first candidate is selected. If not set, the first candidate is selected or,
  // with devices of several drivers, the first whose memory all candidates can use without a copy.
  std::optional<size_t> lead_allocator;
  Ref<hal::Capture> capture;           // captures every executed command buffer; null: no capture
  Ref<hal::TensorTrace> tensors;       // traces their dispatches until the context is destroyed; null: no
                                       // trace. Not with a capture
  TargetFeatures targets;              // required by the modules of the context
  Ref<Budget> memory;                  // charged for objects of programs; null: not charged
  Ref<hal::ChannelProvider> channels;  // null: found when a program requests a channel

  uint64_t owner = 0;  // for the program's allocations, see halyard_memory_request_t

  // State, not options; created with the context: the channels that the program has opened, and the work that
  // its calls have in flight.
  std::shared_ptr<hal::OpenChannels> open_channels;
  std::shared_ptr<WorkScopes> work;
};

struct HalInlineOptions {
  TraceSink trace;     // sink of hal_inline.buffer_view.trace
  Ref<Budget> memory;  // charged for allocations of programs; null: not charged
  uint64_t owner = 0;  // for allocations, see halyard_memory_request_t
};

struct HalLoaderOptions {
  Ref<hal::Device> device;                  // runs the kernels; null: a device of kLoaderDevice is opened
  Ref<hal::DriverRegistry> drivers;         // for opening the device; may be null if `device` is set
  std::vector<hal::DeviceOption> settings;  // options for opening the device
  TargetFeatures targets;                   // required by the modules of the context
  Ref<Budget> memory;                       // charged for executables; null: not charged
  Ref<hal::TensorTrace> tensors;            // traces dispatches; null: no trace
};

}  // namespace halyard::modules
