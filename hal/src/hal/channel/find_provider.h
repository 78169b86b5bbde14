// Finds the channel provider of a process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hal/channel/launch.h"
#include "hal/channel/provider.h"

namespace halyard::hal {

// Finds the provider of a process to which the embedder has given none. First $HALYARD_CHANNEL_PROVIDER,
// the path of a library (not in set-uid programs). Then, in a launched process, the library for its
// launcher; otherwise a world of one rank. NOT_FOUND: no library for the launcher, with the searched
// places.
Result<Ref<ChannelProvider>> find_provider(const Launch& launch, uint64_t timeout_ns = 0);

// The candidate libraries of channel providers: every halyard-channel-NAME.so in the folders of <library
// folder>/halyard/channels.
std::vector<std::string> channel_libraries();

}  // namespace halyard::hal
