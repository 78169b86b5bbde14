// A synchronous dispatch on host memory, for programs without device buffers and queues.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/work_scope.h"
#include "hal/device/executable.h"

namespace halyard::hal {

struct HostBinding {
  std::span<uint8_t> bytes;
  bool is_mutable = false;
  bool is_private = false;  // the binding is constant, but the work may still write to it (ruling 31)
};

// Runs the function of the executable on its device, with at most kMaxBindings ranges of host memory,
// borrowed for the call. Empty grids run nothing. `scope` (may be null) can stop the work. OUT_OF_RANGE and
// INVALID_ARGUMENT as for recorded dispatches. UNIMPLEMENTED: the device cannot import host memory. Otherwise
// the failure of the work. Any thread.
Result<> dispatch_now(Executable& executable, uint64_t function, const std::array<uint32_t, 3>& workgroups,
                      std::span<const uint32_t> constants, std::span<const HostBinding> bindings,
                      const WorkScope* scope = nullptr);

}  // namespace halyard::hal
