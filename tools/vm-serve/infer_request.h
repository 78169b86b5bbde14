// The inference request of the Open Inference Protocol: the JSON object, and the announced binary tensors
// behind it (binary tensor data extension). Specified by the protocol's inference_rest.md and its OpenAPI
// text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "tensor.h"

namespace halyard::tools::serve {

struct RequestInput {
  size_t index = 0;  // in ModelSpec::inputs
  std::vector<int64_t> shape;
  uint64_t byte_size = 0;  // of a tensor of that shape
  bool is_binary = false;  // its bytes follow the JSON object, in the order of the inputs
  Bytes data;              // empty as long as a binary tensor has not been read
};

struct RequestOutput {
  size_t index = 0;  // in ModelSpec::outputs
  bool is_binary = false;
};

struct InferRequest {
  std::optional<std::string> id;
  std::vector<RequestInput> inputs;    // one for each of the model's, in the order of the request
  std::vector<RequestOutput> outputs;  // in the order of the request; all of them if it names none

  uint64_t binary_size() const;  // bytes of all binary tensors; saturates
};

// Reads and checks a request for a model. The members of objects may come in any order; unknown ones are
// ignored, as the protocol says. No memory is reserved because of a number in the request: data that stand in
// the JSON object take at most eight times its size, binary tensors are only announced. INVALID_ARGUMENT:
// malformed JSON, with its place, or a request that does not fit the model; RESOURCE_EXHAUSTED: out of
// memory.
Result<InferRequest> parse_infer_request(std::string_view json, const ModelSpec& model);

}  // namespace halyard::tools::serve
