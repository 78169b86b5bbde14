// An evenly distributed sample of many attempts. The available time limits its size.
#pragma once

#include <cstdint>
#include <functional>

#include "session.h"

namespace halyard::cts {

// Calls `attempt` with numbers below `total`, each at most once: `most` of them, or fewer if that takes more
// than a quarter of the session's patience. Adds a remark with the number of attempts, unless it is `total`.
void try_sample(Session& s, uint64_t total, uint64_t most, const std::function<void(uint64_t)>& attempt);

}  // namespace halyard::cts
