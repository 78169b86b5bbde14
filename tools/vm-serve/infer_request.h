// The inference request of the Open Inference Protocol, checked against the model, whatever its encoding was.
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
  bool is_binary = false;  // in JSON: the bytes follow the object, in the order of the inputs
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

// Checks the parts of a request against the model, and collects them. All failures are INVALID_ARGUMENT.
class InferRequestBuilder {
 public:
  // The model must outlive the builder.
  explicit InferRequestBuilder(const ModelSpec& model) : model_(model) {}

  // The type with this name, of the input `input`.
  static Result<const DataType*> type_named(std::string_view datatype, std::string_view input);
  // Checks an input that has its shape, and sets its index and size. `type` null: the request gives none.
  Result<> check(RequestInput& input, std::string_view name, const DataType* type, bool has_shape) const;
  // Adds a checked input.
  void add(RequestInput input) { request_.inputs.push_back(std::move(input)); }
  Result<> add_output(std::string_view name);

  const InferRequest& request() const { return request_; }
  // The request, if every input of the model has been added.
  Result<InferRequest> finish();

 private:
  const ModelSpec& model_;
  InferRequest request_;
};

// "'x', 'y'", for messages.
std::string names_of(const std::vector<TensorSpec>& tensors);

}  // namespace halyard::tools::serve
