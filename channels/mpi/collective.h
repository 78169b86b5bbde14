// Collectives of all ranks: first messages, which complete small ones; then the bytes of large ones, either
// moved as they are, or reduced on the way (pipeline.h).
#pragma once

#include <memory>

#include "channel.h"
#include "operation.h"

namespace halyard::mpi {

std::unique_ptr<Operation> make_collective(Channel& channel, const halyard_collective_t& collective);

}  // namespace halyard::mpi
