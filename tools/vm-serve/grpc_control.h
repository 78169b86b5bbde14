// The messages of Triton's extensions: the repository, statistics, configurations.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config_document.h"
#include "endpoints.h"
#include "wire.h"

namespace halyard::tools::serve {

// RepositoryIndexRequest: whether it asks only for models that are ready. INVALID_ARGUMENT: malformed.
Result<bool> read_index_message(WireReader message);
// RepositoryModelLoadRequest and RepositoryModelUnloadRequest: the name of the model. INVALID_ARGUMENT:
// malformed, or with `is_load` a configuration or files, which come from the folder alone.
Result<std::string> read_control_message(WireReader message, bool is_load);

// RepositoryIndexResponse.
std::string index_message(std::span<const Repository::State> states, bool only_ready);
// ModelStatisticsResponse.
std::string statistics_message(std::span<const VersionStatistics> versions);
// ModelConfigResponse.
std::string config_message(const ModelSpec& model, const ModelConfig& config);

}  // namespace halyard::tools::serve
