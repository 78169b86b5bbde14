// The responses that need no call: metadata, health, metrics, the page.
#pragma once

#include "response.h"
#include "route.h"
#include "server.h"

namespace halyard::tools::serve {

// For every endpoint except Endpoint::infer. Precondition: `route.status` is 200.
Response answer(Server& server, const Route& route);

// The response for a route whose status is not 200.
Response refusal(const Route& route);

}  // namespace halyard::tools::serve
