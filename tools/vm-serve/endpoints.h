// The responses that need no call: metadata, health, metrics, the page.
#pragma once

#include "control_request.h"
#include "response.h"
#include "route.h"
#include "server.h"

namespace halyard::tools::serve {

// For every endpoint that reads (GET). Precondition: `route.status` is 200.
Response answer(Server& server, const Route& route);

// The states of all versions of all models.
Response index_answer(const Server& server, const ControlRequest& request);

// The response for a route whose status is not 200.
Response refusal(const Route& route);

}  // namespace halyard::tools::serve
