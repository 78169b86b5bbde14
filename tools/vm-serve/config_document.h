// The configuration of a model, as Triton's clients read it: the message ModelConfig as JSON.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor.h"

namespace halyard::tools::serve {

struct ModelConfig {
  std::string_view file;   // path of the module
  uint64_t max_batch = 0;  // rows; 0: no batches
  size_t contexts = 1;     // at most
  std::chrono::nanoseconds batch_delay{};
};

// The dimensions of a tensor in the configuration: with batches those after the first.
std::span<const int64_t> dimensions_of(const TensorSpec& tensor, bool has_batches);

// {"name":"m","platform":"iree_vmfb","max_batch_size":8,"input":[...],...}. With batches, the dimensions of
// tensors are those after the first.
std::string config_document(const ModelSpec& model, const ModelConfig& config);

}  // namespace halyard::tools::serve
