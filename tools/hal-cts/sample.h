// An evenly spread sample of many attempts, as large as the time allows.
#pragma once

#include <cstdint>
#include <functional>

#include "session.h"

namespace halyard::cts {

// Calls `attempt` with numbers below `total`, each at most once: `most` of them, or fewer if a quarter of the
// session's patience is over before. Adds a remark with their number, unless it is `total`.
void try_sample(Session& s, uint64_t total, uint64_t most, const std::function<void(uint64_t)>& attempt);

}  // namespace halyard::cts
