// Recordings and ranges of messages as those of the host, which validates them as it validates a program's.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "hal/queue/queue.h"
#include "remote/message.h"
#include "server/objects.h"

namespace halyard::device_server {

namespace wire = schema::remote;

// INVALID_ARGUMENT: no such memory, or no range: the client breaks the protocol.
// Otherwise the failure of a memory that could not be allocated goes to `failure`.
Result<hal::BufferRange> range_of(Objects& objects, const wire::Range* range, Status& failure);

// The object has either the commands or the failure of recording them. A failed result is a broken protocol.
Result<ListObject> record(Objects& objects, const Ref<hal::Device>& device, Budget& memory,
                          const wire::ListCreate& asked);

}  // namespace halyard::device_server
