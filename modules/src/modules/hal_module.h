// The native module `hal`, which compiled programs call to use devices. One table, modules/hal_functions.inc,
// lists every version of every function; imports bind by name and signature. Specified by hal-module.md and
// hal-semantics.md.
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
#include "hal/view/buffer_view.h"
#include "modules/function_table.h"
#include "modules/target_features.h"
#include "modules/work_scopes.h"
#include "vm/module/native_module.h"
#include "vm/object/type_registry.h"

namespace halyard::modules {

// hal.buffer, hal.device, ...: the eleven types that modules may name.
void add_hal_types(vm::TypeRegistry& types);

// The sink of hal.buffer_view.trace; if empty, views are neither traced nor checked. Called on the thread of
// the invocation.
using TraceSink = std::function<void(std::string_view key, std::span<hal::BufferView* const> views)>;

struct HalOptions {
  std::vector<Ref<hal::Device>> devices;  // in the order of hal.devices.get
  TraceSink trace;
  // Policy of hal.allocator.select: the candidate that is this device (index in `devices`) if there is one,
  // else the first. Absent: the first or, with devices of several drivers, the first whose memory all
  // candidates can use without a copy.
  std::optional<size_t> lead_allocator;
  Ref<hal::Capture> capture;           // of every command buffer that programs execute; null: none
  Ref<hal::TensorTrace> tensors;       // of their dispatches; null: none. Not with a capture
  TargetFeatures targets;              // features stated by the modules of the context
  Ref<Budget> memory;                  // objects of programs are charged to it; null: not charged
  Ref<hal::ChannelProvider> channels;  // of collectives; null: found when a program asks for a channel

  uint64_t owner = 0;  // of what the program allocates, as in halyard_memory_request_t

  // Not options: the channels of the program, and the work in flight of its calls. Made with the context.
  std::shared_ptr<hal::OpenChannels> open_channels;
  std::shared_ptr<WorkScopes> work;
};

// The reported version. The module serves programs made for hal 0.5, 0.6 and 0.7.
inline constexpr uint32_t kHalVersion = 7;

std::span<const TableFunction> hal_signatures();

Ref<vm::NativeModule> create_hal_module(HalOptions options);

}  // namespace halyard::modules
