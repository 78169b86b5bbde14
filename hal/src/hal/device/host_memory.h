// A device for host memory, for programs without devices: buffers are in memory of this process, and no
// driver library is needed. The device has only memory: queue work, semaphores and executables are
// UNIMPLEMENTED.
#pragma once

#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"

namespace halyard::hal {

// A new device. Like other devices, each keeps freed memory for reuse until it is closed.
Result<Ref<Device>> open_host_memory();

}  // namespace halyard::hal
