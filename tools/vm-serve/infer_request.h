// The inference request of the Open Inference Protocol: the JSON object, and the binary tensors after it
// (binary tensor data extension). Specified by the protocol's inference_rest.md and its OpenAPI text.
#pragma once

#include <functional>
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
  uint64_t byte_size = 0;  // size of the tensor
  bool is_binary = false;  // the bytes follow the JSON object, in the order of the inputs
  AlignedBuffer data;      // empty until a binary tensor has been read
};

struct RequestOutput {
  size_t index = 0;  // in ModelSpec::outputs
  bool is_binary = false;
};

struct InferRequest {
  std::optional<std::string> id;
  std::vector<RequestInput> inputs;    // one for each input of the model, in the order of the request
  std::vector<RequestOutput> outputs;  // in the order of the request; all outputs if the request names none

  uint64_t binary_size() const;  // total bytes of binary tensors; saturates
};

// Called before allocating `bytes` of memory for tensors. False: no memory.
using Reserve = std::function<bool(uint64_t bytes)>;

// Parses and checks a request for a model. The members of objects may be in any order, but must not repeat;
// unknown members are ignored, as the protocol requires. Memory is allocated for elements in the JSON object,
// at most eight bytes for two bytes of text, whatever the order. Binary tensors are not read here.
// INVALID_ARGUMENT: malformed JSON, with its place, or a request that does not match the model. UNAVAILABLE:
// `reserve` has refused. RESOURCE_EXHAUSTED: out of memory.
Result<InferRequest> parse_infer_request(std::string_view json, const ModelSpec& model,
                                         const Reserve& reserve = {});

}  // namespace halyard::tools::serve
