// Models for requests to vm-serve: one with an input of every type of the protocol, and one for each type, so
// that short requests can be complete.
#pragma once

#include <string>
#include <vector>

#include "halyard/element_type.h"
#include "tensor.h"

namespace halyard::fuzz {

using tools::serve::DataType;
using tools::serve::datatype_named;
using tools::serve::datatypes;
using tools::serve::kAnySize;
using tools::serve::ModelSpec;
using tools::serve::TensorSpec;

inline ModelSpec make_model() {
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

inline std::vector<ModelSpec> make_models() {
  const ModelSpec all = make_model();
  std::vector<ModelSpec> models = {all};
  for (const TensorSpec& tensor : all.inputs) {
    ModelSpec one{.name = "m", .version = "1", .inputs = {tensor}, .outputs = {tensor}};
    one.inputs[0].name = one.outputs[0].name = "x";
    models.push_back(one);
  }
  return models;
}

}  // namespace halyard::fuzz
