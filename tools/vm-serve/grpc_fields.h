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

// Triton's extensions.
namespace index_request_fields {
enum : uint32_t { kReady = 2 };
}
namespace index_response_fields {
enum : uint32_t { kModels = 1 };
}
namespace index_fields {
enum : uint32_t { kName = 1, kVersion, kState, kReason };
}
namespace control_request_fields {
enum : uint32_t { kModelName = 2, kParameters };
}
namespace map_fields {
enum : uint32_t { kKey = 1 };
}
namespace statistics_response_fields {
enum : uint32_t { kModelStats = 1 };
}
namespace statistics_fields {
enum : uint32_t {
  kName = 1,
  kVersion,
  kLastInference,
  kInferenceCount,
  kExecutionCount,
  kInference,
  kBatches
};
}
// InferStatistics has the call's sums from kInput on, InferBatchStatistics from kBatchInput on.
namespace infer_statistics_fields {
enum : uint32_t { kSuccess = 1, kFail, kQueue, kInput, kBatchSize = 1, kBatchInput };
}
namespace duration_fields {
enum : uint32_t { kCount = 1, kNs };
}
namespace config_response_fields {
enum : uint32_t { kConfig = 1 };
}
namespace config_fields {
enum : uint32_t {
  kName = 1,
  kPlatform,
  kVersionPolicy,
  kMaxBatchSize,
  kInput,
  kOutput,
  kInstanceGroup,
  kFile,
  kDynamicBatching = 11,
  kBackend = 17
};
}
namespace version_policy_fields {
enum : uint32_t { kAll = 2 };
}
namespace config_input_fields {
enum : uint32_t { kName = 1, kType, kFormat, kDims, kReshape };
}
namespace config_output_fields {
enum : uint32_t { kName = 1, kType, kDims, kLabels, kReshape };
}
namespace instance_group_fields {
enum : uint32_t { kName = 1, kCount };
}
namespace dynamic_batching_fields {
enum : uint32_t { kDelay = 2 };
}

}  // namespace halyard::tools::serve
