// A device for host memory, for programs without devices: buffers are in memory of this process, and no
// driver library is needed. Queue work, semaphores and executables are UNIMPLEMENTED.
#pragma once

#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"

namespace halyard::hal {

// Creates a device. Like other devices, it keeps freed memory for reuse until it is closed.
Result<Ref<Device>> open_host_memory();

}  // namespace halyard::hal
