// Compares names, types and shapes.
#include "infer_request.h"

#include <algorithm>
#include <limits>

namespace halyard::tools::serve {

namespace {

template <typename... Args>
std::unexpected<Failure> wrong(fmt::format_string<Args...> format, Args&&... args) {
  return fail(HALYARD_INVALID_ARGUMENT, format, std::forward<Args>(args)...);
}

}  // namespace

uint64_t InferRequest::binary_size() const {
  uint64_t size = 0;
  for (const RequestInput& input : inputs)
    if (input.is_binary) size += std::min(input.byte_size, std::numeric_limits<uint64_t>::max() - size);
  return size;
}

std::string names_of(const std::vector<TensorSpec>& tensors) {
  std::string names;
  for (const TensorSpec& tensor : tensors) names += (names.empty() ? "'" : ", '") + tensor.name + "'";
  return names.empty() ? "none" : names;
}

Result<const DataType*> InferRequestBuilder::type_named(std::string_view datatype, std::string_view input) {
  if (const DataType* const type = datatype_named(datatype)) return type;
  std::string known;
  for (const DataType& type : datatypes()) known += (known.empty() ? "" : ", ") + std::string(type.name);
  return wrong("input '{}' has the datatype '{}'; this server has {}", input, datatype, known);
}

Result<> InferRequestBuilder::check(RequestInput& input, std::string_view name, const DataType* type,
                                    bool has_shape) const {
  const auto spec = std::ranges::find(model_.inputs, name, &TensorSpec::name);
  if (name.empty())
    return wrong("an input has no 'name'; model '{}' takes {}", model_.name, names_of(model_.inputs));
  if (spec == model_.inputs.end())
    return wrong("model '{}' has no input '{}'; it takes {}", model_.name, name, names_of(model_.inputs));
  input.index = static_cast<size_t>(spec - model_.inputs.begin());
  for (const RequestInput& other : request_.inputs)
    if (other.index == input.index) return wrong("the request has input '{}' twice", name);
  if (!type) return wrong("input '{}' has no 'datatype'; expected {}", name, spec->type->name);
  if (!has_shape) return wrong("input '{}' has no 'shape'; expected {}", name, shape_text(spec->shape));
  if (!is_accepted(spec->element_type, *type))
    return wrong("input '{}' is {}; model '{}' takes {}", name, type->name, model_.name, spec->type->name);
  if (!spec->matches(input.shape))
    return wrong("input '{}' has the shape {}; model '{}' takes {}", name, shape_text(input.shape),
                 model_.name, shape_text(spec->shape));
  const auto count = element_count(input.shape, type->size);
  if (!count) return wrong("input '{}' has the shape {}, which is too large", name, shape_text(input.shape));
  input.byte_size = *count * type->size;
  return {};
}

Result<> InferRequestBuilder::add_output(std::string_view name) {
  const auto spec = std::ranges::find(model_.outputs, name, &TensorSpec::name);
  if (spec == model_.outputs.end())
    return wrong("model '{}' has no output '{}'; it has {}", model_.name, name, names_of(model_.outputs));
  const auto index = static_cast<size_t>(spec - model_.outputs.begin());
  for (const RequestOutput& other : request_.outputs)
    if (other.index == index) return wrong("the request names output '{}' twice", name);
  request_.outputs.push_back({index, false});
  return {};
}

Result<InferRequest> InferRequestBuilder::finish() {
  for (size_t i = 0; i < model_.inputs.size(); ++i) {
    const bool is_given =
        std::ranges::any_of(request_.inputs, [&](const RequestInput& input) { return input.index == i; });
    if (!is_given)
      return wrong("the request lacks input '{}'; model '{}' takes {}", model_.inputs[i].name, model_.name,
                   names_of(model_.inputs));
  }
  return std::move(request_);
}

}  // namespace halyard::tools::serve
