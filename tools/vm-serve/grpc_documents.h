// The messages of the gRPC service that say what a server and its models are.
#pragma once

#include <span>
#include <string>

#include "common/failure.h"
#include "tensor.h"
#include "wire.h"

namespace halyard::tools::serve {

// ModelReadyRequest, ModelMetadataRequest.
struct ModelName {
  std::string name;
  std::string version;  // "": the server chooses
};
// INVALID_ARGUMENT: the bytes are not a message of protocol buffers, or a text is too long.
Result<ModelName> read_model_name(WireReader message);

// ServerLiveResponse, ServerReadyResponse, ModelReadyResponse.
std::string state_message(bool is_so);
// ServerMetadataResponse.
std::string server_message(std::string_view version);
// ModelMetadataResponse.
std::string model_message(const ModelSpec& model, std::span<const std::string> versions);

}  // namespace halyard::tools::serve
