// The native module `hal`, through which compiled programs use devices. One table, modules/hal_functions.inc,
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

// Adds hal.buffer, hal.device, ...: the eleven types that modules may name.
void add_hal_types(vm::TypeRegistry& types);

// The sink of hal.buffer_view.trace; if empty, views are neither traced nor checked. Called on the thread of
// the invocation.
using TraceSink = std::function<void(std::string_view key, std::span<hal::BufferView* const> views)>;

struct HalOptions {
  std::vector<Ref<hal::Device>> devices;  // in the order that hal.devices.get uses
  TraceSink trace;
  // The policy of hal.allocator.select. Set: an index in `devices`; selects the candidate that is this
  // device, otherwise the first candidate. Not set: selects the first candidate or, with devices of several
  // drivers, the first whose memory all candidates can use without a copy.
  std::optional<size_t> lead_allocator;
  Ref<hal::Capture> capture;           // captures every executed command buffer; null: no capture
  Ref<hal::TensorTrace> tensors;       // traces their dispatches; null: no trace. Not with a capture
  TargetFeatures targets;              // required by the modules of the context
  Ref<Budget> memory;                  // charged for objects of programs; null: not charged
  Ref<hal::ChannelProvider> channels;  // null: found when a program requests a channel

  uint64_t owner = 0;  // for the program's allocations, see halyard_memory_request_t

  // State, not options; created with the context: the program's channels, and the work in flight of its
  // calls.
  std::shared_ptr<hal::OpenChannels> open_channels;
  std::shared_ptr<WorkScopes> work;
};

// The reported version. The module supports programs made for hal 0.5, 0.6 and 0.7.
inline constexpr uint32_t kHalVersion = 7;

std::span<const TableFunction> hal_signatures();

Ref<vm::NativeModule> create_hal_module(HalOptions options);

}  // namespace halyard::modules
