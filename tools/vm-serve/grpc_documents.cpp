// Appends fields.
#include "grpc_documents.h"

#include "documents.h"
#include "grpc_fields.h"
#include "infer_message.h"

namespace halyard::tools::serve {

namespace {

std::string tensor_message(const TensorSpec& tensor) {
  std::string message;
  append_text(message, tensor_fields::kName, tensor.name);
  append_text(message, tensor_fields::kDatatype, tensor.type->name);
  append_numbers(message, tensor_fields::kShape, tensor.shape);
  return message;
}

}  // namespace

Result<ModelName> read_model_name(WireReader message) {
  ModelName name;
  while (message.next()) {
    if (message.is(model_request_fields::kName, WireType::bytes))
      name.name = TOOL_TRY(read_text(message.content(), "name"));
    if (message.is(model_request_fields::kVersion, WireType::bytes))
      name.version = TOOL_TRY(read_text(message.content(), "version"));
  }
  if (message.is_malformed())
    return fail(HALYARD_INVALID_ARGUMENT, "the request is not a message of protocol buffers");
  return name;
}

std::string state_message(bool is_so) {
  std::string message;
  if (is_so) append_number(message, state_fields::kIs, 1);
  return message;
}

std::string server_message(std::string_view version) {
  std::string message;
  append_text(message, server_metadata_fields::kName, "halyard");
  append_text(message, server_metadata_fields::kVersion, version);
  for (const std::string_view extension : kExtensions)
    append_text(message, server_metadata_fields::kExtensions, extension);
  return message;
}

std::string model_message(const ModelSpec& model, std::span<const std::string> versions) {
  std::string message;
  append_text(message, model_metadata_fields::kName, model.name);
  for (const std::string& version : versions) append_text(message, model_metadata_fields::kVersions, version);
  append_text(message, model_metadata_fields::kPlatform, "iree_vmfb");
  for (const TensorSpec& input : model.inputs)
    append_text(message, model_metadata_fields::kInputs, tensor_message(input));
  for (const TensorSpec& output : model.outputs)
    append_text(message, model_metadata_fields::kOutputs, tensor_message(output));
  return message;
}

}  // namespace halyard::tools::serve
