// An arbitrary path, or an arbitrary inference request for a model with every type of the protocol. What is
// accepted must be consistent, and its answer must be JSON.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "documents.h"
#include "fuzzing.h"
#include "halyard/element_type.h"
#include "infer_request.h"
#include "route.h"

using namespace halyard::tools::serve;

namespace {

ModelSpec make_model() {
  ModelSpec model{.name = "m", .version = "1", .inputs = {}, .outputs = {}};
  for (const DataType& type : datatypes()) {
    TensorSpec spec{.name = std::string(type.name),
                    .type = &type,
                    .element_type = type.element_type,
                    .shape = {kAnySize, kAnySize}};
    if (model.inputs.empty()) spec.any_shape = true;
    model.inputs.push_back(spec);
  }
  TensorSpec number{
      .name = "n", .type = datatype_named("INT32"), .element_type = HALYARD_ELEMENT_I32, .shape = {1}};
  number.is_number = true;
  model.inputs.push_back(number);
  model.outputs = model.inputs;
  return model;
}

// One input of each model, so that short requests can be complete.
std::vector<ModelSpec> make_models() {
  const ModelSpec all = make_model();
  std::vector<ModelSpec> models = {all};
  for (const TensorSpec& tensor : all.inputs) {
    ModelSpec one{.name = "m", .version = "1", .inputs = {tensor}, .outputs = {tensor}};
    one.inputs[0].name = one.outputs[0].name = "x";
    models.push_back(one);
  }
  return models;
}

void check_request(std::string_view json, const ModelSpec& model) {
  auto request = parse_infer_request(json, model);
  if (!request) {
    if (request.error().text.empty()) halyard::fuzz::finding("a failure without a message");
    if (!nlohmann::json::accept(error_document(request.error().text)))
      halyard::fuzz::finding("an error that is no JSON");
    return;
  }
  if (!nlohmann::json::accept(json)) halyard::fuzz::finding("a request was accepted that is no JSON");
  if (request->inputs.size() != model.inputs.size()) halyard::fuzz::finding("an input is missing");
  std::vector<OutputTensor> outputs;
  for (const RequestInput& input : request->inputs) {
    const TensorSpec& spec = model.inputs[input.index];
    const auto count = element_count(input.shape, spec.type->size);
    if (!count || *count * spec.type->size != input.byte_size)
      halyard::fuzz::finding("a tensor of another size than its shape");
    if (input.is_binary ? input.data.size() != 0 : input.data.size() != input.byte_size)
      halyard::fuzz::finding("a tensor has not as many bytes as it says");
    if (!input.is_binary)
      outputs.push_back(
          {.spec = &spec, .shape = input.shape, .bytes = input.data.span(), .is_binary = false});
  }
  for (const RequestOutput& output : request->outputs)
    if (output.index >= model.outputs.size()) halyard::fuzz::finding("an output that the model has not");
  if (!nlohmann::json::accept(infer_document(model, request->id, outputs)))
    halyard::fuzz::finding("an answer that is no JSON");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<ModelSpec> models = make_models();
  if (size == 0) return 0;
  // The first byte chooses; the rest lies in memory of its own, so that reading beyond it is seen.
  const size_t which = data[0];
  const auto rest = std::make_unique<char[]>(size);
  std::copy(data + 1, data + size, rest.get());
  const std::string_view text(rest.get(), size - 1);
  if (which % 16 == 15) {
    for (const std::string_view method : {"GET", "POST", "HEAD"}) {
      const Route route = route_of(method, text);
      if (route.status != 200 && route.status != 400 && route.status != 404 && route.status != 405)
        halyard::fuzz::finding("a route with another status");
      if (route.status == 200 && (route.endpoint >= Endpoint::model_metadata) == route.model.empty())
        halyard::fuzz::finding("a route without its model");
    }
    return 0;
  }
  check_request(text, models[which % models.size()]);
  return 0;
}
