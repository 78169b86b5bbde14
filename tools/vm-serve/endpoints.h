// The answers that need no call: metadata, health, metrics, the page.
#pragma once

#include "response.h"
#include "route.h"
#include "server.h"

namespace halyard::tools::serve {

// For every endpoint but Endpoint::infer. `route.status` is 200.
Response answer(Server& server, const Route& route);

// For routes whose status is not 200.
Response refusal(const Route& route);

}  // namespace halyard::tools::serve
