// The native module `hal_inline`: buffers and views for programs that use no device. Their memory is the
// host's, and everything is done in the call. Specified by hal-module.md, "hal_inline and hal_loader".
#pragma once

#include <cstdint>
#include <span>

#include "base/budget.h"
#include "modules/function_table.h"
#include "modules/hal_module.h"
#include "vm/native/native_module.h"

namespace halyard::modules {

struct HalInlineOptions {
  TraceSink trace;     // of hal_inline.buffer_view.trace
  Ref<Budget> memory;  // what programs allocate is charged to it; null: not counted
};

inline constexpr uint32_t kHalInlineVersion = 0;

std::span<const TableFunction> hal_inline_signatures();

Ref<vm::NativeModule> create_hal_inline_module(HalInlineOptions options);

}  // namespace halyard::modules
