// The responses that need no call: metadata, health, metrics, the page.
#pragma once

#include <string>
#include <vector>

#include "config_document.h"
#include "control_request.h"
#include "response.h"
#include "route.h"
#include "server.h"
#include "statistics.h"

namespace halyard::tools::serve {

// For every endpoint that reads (GET). Precondition: `route.status` is 200.
Response answer(Server& server, const Route& route);

// Whether the server can answer inference requests for its models.
bool is_ready(Server& server);
// Whether the model can be called. NOT_FOUND.
Result<bool> is_ready(Server& server, const std::string& model, const std::string& version);
// The versions of a model that have been loaded.
std::vector<std::string> loaded_versions(Server& server, const std::string& model);
ModelConfig model_config(Server& server, const Model& model);

// Of the model and version; "": of all. NOT_FOUND, UNAVAILABLE: no version of the model is loaded.
struct VersionStatistics {
  std::string name;
  std::string version;
  Statistics statistics;
};
Result<std::vector<VersionStatistics>> model_statistics(Server& server, const std::string& model,
                                                        const std::string& version);

// The states of all versions of all models.
Response index_answer(const Server& server, const ControlRequest& request);

// The response for a route whose status is not 200.
Response refusal(const Route& route);

}  // namespace halyard::tools::serve
