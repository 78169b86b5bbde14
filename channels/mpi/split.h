// Split: the ranks of a channel exchange their color and key, and agree on a number for the new channels that
// is free on all ranks. A rank may take the number for another split before all have agreed. So the ranks
// vote on the number, and propose again if one rank refuses.
#pragma once

#include <memory>
#include <string>

#include "channel.h"
#include "operation.h"

namespace halyard::mpi {

// `child` becomes a channel of the ranks with this color, and may be null for color -1. For
// hal.channel.create, `opens` is not empty and is the same on all ranks.
std::unique_ptr<Operation> make_split(Channel& channel, int32_t color, int32_t key, Channel* child,
                                      std::string opens);

}  // namespace halyard::mpi
