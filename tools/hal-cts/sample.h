// A sample of many things to try, spread evenly over them, and as large as the time allows.
#pragma once

#include <cstdint>
#include <functional>

#include "session.h"

namespace halyard::cts {

// Calls `attempt` with numbers below `total`, each at most once: with `most` of them, or with fewer where a
// quarter of the session's patience is over before. Remarks how many there were, unless it was all of them.
void try_sample(Session& s, uint64_t total, uint64_t most, const std::function<void(uint64_t)>& attempt);

}  // namespace halyard::cts
