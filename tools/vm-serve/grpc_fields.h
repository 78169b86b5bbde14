// The field numbers of the messages of inference.proto that vm-serve reads and writes.
#pragma once

#include <cstdint>

namespace halyard::tools::serve {

// ServerLiveResponse, ServerReadyResponse, ModelReadyResponse.
namespace state_fields {
enum : uint32_t { kIs = 1 };
}
// ModelReadyRequest, ModelMetadataRequest.
namespace model_request_fields {
enum : uint32_t { kName = 1, kVersion };
}
namespace server_metadata_fields {
enum : uint32_t { kName = 1, kVersion, kExtensions };
}
namespace model_metadata_fields {
enum : uint32_t { kName = 1, kVersions, kPlatform, kInputs, kOutputs };
}
// TensorMetadata, InferInputTensor, InferOutputTensor, InferRequestedOutputTensor.
namespace tensor_fields {
enum : uint32_t { kName = 1, kDatatype, kShape, kParameters, kContents };
}
namespace infer_request_fields {
enum : uint32_t { kModelName = 1, kModelVersion, kId, kParameters, kInputs, kOutputs, kRawInputContents };
}
namespace infer_response_fields {
enum : uint32_t { kModelName = 1, kModelVersion, kId, kParameters, kOutputs, kRawOutputContents };
}

}  // namespace halyard::tools::serve
