// Split: the ranks of a channel tell each other their color and key, and agree on a number for the new
// channels that is free on all of them. A rank may agree on another split meanwhile, which takes the number;
// so they vote on it, and propose again where one refuses.
#pragma once

#include <memory>
#include <string>

#include "channel.h"
#include "operation.h"

namespace halyard::mpi {

// `child` becomes a channel of the ranks with this color, and may be null for color -1. `opens`: not empty
// for hal.channel.create, and the same text on all ranks.
std::unique_ptr<Operation> make_split(Channel& channel, int32_t color, int32_t key, Channel* child,
                                      std::string opens);

}  // namespace halyard::mpi
