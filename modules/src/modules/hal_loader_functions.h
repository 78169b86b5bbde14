// The functions of the `hal_loader` module as plain C++ functions, one for each signature. The table
// modules/hal_loader_functions.inc maps signatures to versions.
#pragma once

#include <cstdint>
#include <mutex>

#include "modules/hal_functions.h"

namespace halyard::modules {

// The state of the module in one context.
struct HalLoaderState {
  explicit HalLoaderState(HalLoaderOptions from) : options(std::move(from)), device(options.device) {}

  const HalLoaderOptions options;
  std::mutex mutex;         // guards the members below
  Ref<hal::Device> device;  // null until first use; then retained
};

namespace hal_loader_functions {

using hal_functions::executable_lookup_function;
using vm::Span;

using Bindings = Span<vm::Buffer&, uint64_t, uint64_t>;  // buffer, offset, length

Result<int32_t> executable_query_support(HalLoaderState&, vm::Buffer& format);
Result<Ref<hal::Executable>> executable_load(vm::CallContext&, HalLoaderState&, vm::Buffer& format,
                                             vm::Buffer& data, vm::Buffer* constants);
Result<> executable_dispatch(vm::CallContext&, HalLoaderState&, hal::Executable&, uint64_t function,
                             uint32_t x, uint32_t y, uint32_t z, Span<uint32_t> constants, Bindings bindings);
// Version 0: takes the index of the entry point.
inline Result<> executable_dispatch_0(vm::CallContext& call, HalLoaderState& state,
                                      hal::Executable& executable, uint32_t entry_point, uint32_t x,
                                      uint32_t y, uint32_t z, Span<uint32_t> constants, Bindings bindings) {
  return executable_dispatch(call, state, executable, entry_point, x, y, z, constants, bindings);
}

}  // namespace hal_loader_functions
}  // namespace halyard::modules
