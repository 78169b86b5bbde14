// QueuePoint: the device and the fences of queue work. Null fences: no wait, no signal.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/budget.h"
#include "base/work_scope.h"
#include "hal/device/device.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

struct QueuePoint {
  Device& device;
  uint64_t affinity = kAnyQueue;
  Fence* wait = nullptr;
  Fence* signal = nullptr;
  Budget* memory = nullptr;    // charged until the work has completed; may be null
  WorkScope* scope = nullptr;  // can stop the work; may be null
  uint64_t owner = 0;          // for allocations, see halyard_memory_request_t
  // Gets the number of the work in traces (TracedDispatch::execution; 0: it is not traced) before the device
  // can know the work; may be null.
  std::atomic<uint64_t>* execution = nullptr;
};

}  // namespace halyard::hal
