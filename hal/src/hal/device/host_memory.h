// Host memory as a device, for programs that use none: buffers lie in memory of this process, and no driver
// is needed. Such a device has memory and nothing else: queue work, semaphores and executables are
// UNIMPLEMENTED.
#pragma once

#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"

namespace halyard::hal {

// A new one. Each keeps the memory that was given back to it, as other devices do, until it goes.
Result<Ref<Device>> open_host_memory();

}  // namespace halyard::hal
