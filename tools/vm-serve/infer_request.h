// The inference request of the Open Inference Protocol: the JSON object, and the announced binary tensors
// behind it (binary tensor data extension). Specified by the protocol's inference_rest.md and its OpenAPI
// text.
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

// Asked before memory is taken for so many bytes of tensors. False: there is none.
using Reserve = std::function<bool(uint64_t bytes)>;

// Reads and checks a request for a model. The members of objects may come in any order, each of them once;
// unknown ones are ignored, as the protocol says. Memory is taken for the elements that stand in the JSON
// object, at most eight bytes for two of text, whatever the order is; binary tensors are only announced.
// INVALID_ARGUMENT: malformed JSON, with its place, or a request that does not fit the model; UNAVAILABLE:
// `reserve` has refused; RESOURCE_EXHAUSTED: out of memory.
Result<InferRequest> parse_infer_request(std::string_view json, const ModelSpec& model,
                                         const Reserve& reserve = {});

}  // namespace halyard::tools::serve
