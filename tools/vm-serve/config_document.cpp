// Appends the members that clients use.
#include "config_document.h"

#include <fmt/format.h>

#include <iterator>
#include <span>

#include "documents.h"

namespace halyard::tools::serve {

namespace {

std::string tensor_document(const TensorSpec& tensor, bool has_batches) {
  const auto dimensions = dimensions_of(tensor, has_batches);
  std::string text =
      fmt::format(R"({{"name":{},"data_type":"TYPE_{}",)", json_string(tensor.name), tensor.type->name);
  // A tensor without further dimensions has the dimension 1, and a reshape that removes it, because
  // clients refuse empty "dims".
  if (dimensions.empty()) return text + R"("dims":[1],"reshape":{"shape":[]}})";
  return text + fmt::format(R"("dims":{}}})", shape_text(dimensions));
}

void append_tensors(std::string& text, std::span<const TensorSpec> tensors, bool has_batches) {
  text += '[';
  for (const TensorSpec& tensor : tensors) {
    if (&tensor != tensors.data()) text += ',';
    text += tensor_document(tensor, has_batches);
  }
  text += ']';
}

}  // namespace

std::span<const int64_t> dimensions_of(const TensorSpec& tensor, bool has_batches) {
  return std::span(tensor.shape).subspan(has_batches ? 1 : 0);
}

std::string config_document(const ModelSpec& model, const ModelConfig& config) {
  const bool has_batches = config.max_batch > 0;
  std::string text =
      fmt::format(R"({{"name":{},"platform":"iree_vmfb","backend":"halyard","version_policy":{{"all":{{}}}},)"
                  R"("max_batch_size":{},"input":)",
                  json_string(model.name), config.max_batch);
  append_tensors(text, model.inputs, has_batches);
  text += R"(,"output":)";
  append_tensors(text, model.outputs, has_batches);
  fmt::format_to(std::back_inserter(text),
                 R"(,"instance_group":[{{"name":{},"kind":"KIND_AUTO","count":{}}}])",
                 json_string(model.name), config.contexts);
  if (has_batches)
    fmt::format_to(std::back_inserter(text), R"(,"dynamic_batching":{{"max_queue_delay_microseconds":{}}})",
                   std::chrono::duration_cast<std::chrono::microseconds>(config.batch_delay).count());
  fmt::format_to(std::back_inserter(text), R"(,"default_model_filename":{}}})",
                 json_string(config.file.substr(config.file.rfind('/') + 1)));
  return text + "\n";
}

}  // namespace halyard::tools::serve
