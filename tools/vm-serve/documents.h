// The JSON objects of responses: metadata, states, inference responses, errors.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor.h"

namespace halyard::tools::serve {

// "{"error":"..."}"; the text may contain any bytes.
std::string error_document(std::string_view text);

// {"live":true}, {"live":true,"ready":true}, {"name":"m","ready":true}
std::string live_document();
std::string ready_document(bool is_ready);
std::string model_ready_document(std::string_view model, bool is_ready);

// Of the protocol, over HTTP and gRPC.
inline constexpr std::string_view kExtensions[] = {"model_repository", "model_configuration", "statistics"};
std::string server_document(std::string_view version);
// {"models":["a","b"]}
std::string models_document(std::span<const std::string> names);
std::string model_document(const ModelSpec& model, std::span<const std::string> versions);

struct OutputTensor {
  const TensorSpec* spec = nullptr;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  bool is_binary = false;  // the bytes follow the document, in the order of the outputs
};
std::string infer_document(const ModelSpec& model, const std::optional<std::string>& id,
                           std::span<const OutputTensor> outputs);
// An upper bound for the size of infer_document(), in bytes.
uint64_t infer_document_bound(const ModelSpec& model, const std::optional<std::string>& id,
                              std::span<const OutputTensor> outputs);

// A JSON string, including its quotes.
std::string json_string(std::string_view text);

}  // namespace halyard::tools::serve
