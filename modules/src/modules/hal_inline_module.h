// The native module `hal_inline`: buffers and views for programs without devices. They use host memory, and
// everything runs within the call. Specified by hal-module.md, "hal_inline and hal_loader".
#pragma once

#include <cstdint>
#include <span>

#include "modules/function_table.h"
#include "modules/module_options.h"
#include "vm/module/native_module.h"

namespace halyard::modules {

inline constexpr uint32_t kHalInlineVersion = 0;

std::span<const TableFunction> hal_inline_signatures();

Ref<vm::NativeModule> create_hal_inline_module(HalInlineOptions options);

}  // namespace halyard::modules
