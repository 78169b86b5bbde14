// The inference request as JSON: the object, and the binary tensors after it (binary tensor data extension).
// Specified by the protocol's inference_rest.md and its OpenAPI text.
#pragma once

#include <string_view>

#include "infer_request.h"

namespace halyard::tools::serve {

// Parses and checks a request for a model. The members of objects may be in any order, but must not repeat;
// unknown members are ignored, as the protocol requires. Memory is allocated for elements in the JSON object,
// at most eight bytes for two bytes of text, whatever the order. Binary tensors are not read here.
// INVALID_ARGUMENT: malformed JSON, with its place, or a request that does not match the model. UNAVAILABLE:
// `reserve` has refused. RESOURCE_EXHAUSTED: out of memory.
Result<InferRequest> parse_infer_request(std::string_view json, const ModelSpec& model,
                                         const Reserve& reserve = {});

}  // namespace halyard::tools::serve
