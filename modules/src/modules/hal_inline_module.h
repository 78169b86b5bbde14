// The native module `hal_inline`: buffers and views for programs without devices. They use host memory, and
// everything runs within the call. Specified by hal-module.md, "hal_inline and hal_loader".
#pragma once

#include <cstdint>
#include <span>

#include "base/budget.h"
#include "modules/function_table.h"
#include "modules/hal_module.h"
#include "vm/module/native_module.h"

namespace halyard::modules {

struct HalInlineOptions {
  TraceSink trace;     // sink of hal_inline.buffer_view.trace
  Ref<Budget> memory;  // charged for allocations of programs; null: not charged
  uint64_t owner = 0;  // for allocations, see halyard_memory_request_t
};

inline constexpr uint32_t kHalInlineVersion = 0;

std::span<const TableFunction> hal_inline_signatures();

Ref<vm::NativeModule> create_hal_inline_module(HalInlineOptions options);

}  // namespace halyard::modules
