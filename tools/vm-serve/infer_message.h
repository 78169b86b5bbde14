// The inference request of the protocol's gRPC service, ModelInferRequest, as the same object that a request
// in JSON becomes; and the response, ModelInferResponse. Specified by inference.proto.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "documents.h"
#include "infer_request.h"
#include "wire.h"

namespace halyard::tools::serve {

// The fields that are needed before the model is known.
struct InferMessageHead {
  std::string model;
  std::string version;   // "": the server chooses
  std::string id;        // "": none
  bool has_raw = false;  // the elements of the inputs are in raw_input_contents
};
// INVALID_ARGUMENT: the bytes are not a message of protocol buffers, or a text is too long.
Result<InferMessageHead> read_infer_head(WireReader message);

// Reads and checks a request for the model. The request has its tensors, in the order of the message, and all
// outputs if it names none. Memory is allocated only for elements that the message has. INVALID_ARGUMENT.
// UNAVAILABLE: `reserve` has refused. RESOURCE_EXHAUSTED: out of memory.
Result<InferRequest> parse_infer_message(const WireReader& message, const ModelSpec& model,
                                         const Reserve& reserve = {});

// A written response: texts, with the bytes of tensors between them.
struct InferAnswer {
  struct Part {
    std::string text;
    std::span<const std::byte> bytes;  // after the text
  };
  std::vector<Part> parts;
  uint64_t size() const;
};
// The elements are raw if `is_raw`, or if one of the outputs has no other form.
InferAnswer infer_answer(const ModelSpec& model, std::string_view id, std::span<const OutputTensor> outputs,
                         bool is_raw);
// An upper bound of the size of the texts.
uint64_t infer_answer_bound(const ModelSpec& model, std::string_view id,
                            std::span<const OutputTensor> outputs);

// A field of text: up to 1 MiB, as in JSON.
Result<std::string> read_text(WireReader content, std::string_view field);

}  // namespace halyard::tools::serve
