// Collectives of all ranks. Each begins with first messages, which complete small collectives. Then the bytes
// of large ones are moved unchanged, or are reduced on the way (pipeline.h).
#pragma once

#include <memory>

#include "channel.h"
#include "operation.h"

namespace halyard::mpi {

std::unique_ptr<Operation> make_collective(Channel& channel, const halyard_collective_t& collective);

}  // namespace halyard::mpi
