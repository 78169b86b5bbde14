// A dispatch over bytes of this process, done when the call returns: for programs that know neither buffers
// of a device nor its queues.
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
  bool is_private = false;  // constants, to which the work may write all the same (ruling 31)
};

// Runs the function of the executable on its device, over bytes that are borrowed for the call; at most
// kMaximumBindings of them. Empty grids run nothing. OUT_OF_RANGE and INVALID_ARGUMENT as for recorded
// dispatches; UNIMPLEMENTED: the device takes no memory of the host; or what comes of the work, which `scope`
// (may be null) stops. Any thread.
Result<> dispatch_now(Executable& executable, uint64_t function, const std::array<uint32_t, 3>& workgroups,
                      std::span<const uint32_t> constants, std::span<const HostBinding> bindings,
                      const WorkScope* scope = nullptr);

}  // namespace halyard::hal
