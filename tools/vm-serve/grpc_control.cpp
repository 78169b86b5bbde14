// Reads and appends fields. The configuration has the members of config_document().
#include "grpc_control.h"

#include <algorithm>
#include <array>

#include "grpc_fields.h"
#include "infer_message.h"

namespace halyard::tools::serve {

namespace {

std::unexpected<Failure> no_message() {
  return fail(HALYARD_INVALID_ARGUMENT, "the request is not a message of protocol buffers");
}

Result<> check_parameter(WireReader entry) {
  while (entry.next()) {
    if (!entry.is(map_fields::kKey, WireType::bytes)) continue;
    TOOL_TRY(check_load_parameter(TOOL_TRY(read_text(entry.content(), "parameters"))));
  }
  if (entry.is_malformed()) return no_message();
  return {};
}

void append_duration(std::string& message, uint32_t field, const DurationSum& sum) {
  std::string inner;
  append_number(inner, duration_fields::kCount, sum.count);
  append_number(inner, duration_fields::kNs, sum.ns);
  append_text(message, field, inner);
}

void append_call(std::string& message, uint32_t first, const CallSums& sums) {
  append_duration(message, first, sums.input);
  append_duration(message, first + 1, sums.infer);
  append_duration(message, first + 2, sums.output);
}

std::string version_message(const VersionStatistics& version) {
  const Statistics& sums = version.statistics;
  std::string message, inner;
  append_text(message, statistics_fields::kName, version.name);
  append_text(message, statistics_fields::kVersion, version.version);
  append_number(message, statistics_fields::kLastInference, sums.last_inference);
  append_number(message, statistics_fields::kInferenceCount, sums.inference_count);
  append_number(message, statistics_fields::kExecutionCount, sums.execution_count);
  append_duration(inner, infer_statistics_fields::kSuccess, sums.success);
  append_duration(inner, infer_statistics_fields::kFail, sums.fail);
  append_duration(inner, infer_statistics_fields::kQueue, sums.queue);
  append_call(inner, infer_statistics_fields::kInput, sums.requests);
  append_text(message, statistics_fields::kInference, inner);
  for (const auto& [rows, calls] : sums.calls) {
    inner.clear();
    append_number(inner, infer_statistics_fields::kBatchSize, rows);
    append_call(inner, infer_statistics_fields::kBatchInput, calls);
    append_text(message, statistics_fields::kBatches, inner);
  }
  return message;
}

// The numbers of the enumeration DataType.
uint64_t number_of(const DataType& type) {
  constexpr std::array<std::string_view, 15> kTypes = {"",       "BOOL", "UINT8", "UINT16", "UINT32",
                                                       "UINT64", "INT8", "INT16", "INT32",  "INT64",
                                                       "FP16",   "FP32", "FP64",  "BYTES",  "BF16"};
  return static_cast<uint64_t>(std::ranges::find(kTypes, type.name) - kTypes.begin()) % kTypes.size();
}

std::string config_tensor_message(const TensorSpec& tensor, bool has_batches, uint32_t dims) {
  const auto dimensions = dimensions_of(tensor, has_batches);
  std::string message;
  append_text(message, config_input_fields::kName, tensor.name);
  append_number(message, config_input_fields::kType, number_of(*tensor.type));
  // As in config_document().
  constexpr int64_t kOne = 1;
  append_numbers(message, dims, dimensions.empty() ? std::span(&kOne, 1) : dimensions);
  static_assert(config_input_fields::kReshape == uint32_t{config_output_fields::kReshape});
  if (dimensions.empty()) append_text(message, config_input_fields::kReshape, "");
  return message;
}

}  // namespace

Result<bool> read_index_message(WireReader message) {
  bool only_ready = false;
  while (message.next())
    if (message.is(index_request_fields::kReady, WireType::varint)) only_ready = message.number() != 0;
  if (message.is_malformed()) return no_message();
  return only_ready;
}

Result<std::string> read_control_message(WireReader message, bool is_load) {
  std::string name;
  while (message.next()) {
    if (message.is(control_request_fields::kModelName, WireType::bytes))
      name = TOOL_TRY(read_text(message.content(), "model_name"));
    if (is_load && message.is(control_request_fields::kParameters, WireType::bytes))
      TOOL_TRY(check_parameter(message.content()));
  }
  if (message.is_malformed()) return no_message();
  return name;
}

std::string index_message(std::span<const Repository::State> states, bool only_ready) {
  std::string message, inner;
  for (const Repository::State& state : states) {
    if (only_ready && !state.is_ready) continue;
    inner.clear();
    append_text(inner, index_fields::kName, state.name);
    append_text(inner, index_fields::kVersion, state.version);
    append_text(inner, index_fields::kState, state.is_ready ? "READY" : "UNAVAILABLE");
    append_text(inner, index_fields::kReason, without_folders(state.reason));
    append_text(message, index_response_fields::kModels, inner);
  }
  return message;
}

std::string statistics_message(std::span<const VersionStatistics> versions) {
  std::string message;
  for (const VersionStatistics& version : versions)
    append_text(message, statistics_response_fields::kModelStats, version_message(version));
  return message;
}

std::string config_message(const ModelSpec& model, const ModelConfig& config) {
  const bool has_batches = config.max_batch > 0;
  std::string message, inner;
  append_text(message, config_fields::kName, model.name);
  append_text(message, config_fields::kPlatform, "iree_vmfb");
  append_text(message, config_fields::kBackend, "halyard");
  append_text(inner, version_policy_fields::kAll, "");
  append_text(message, config_fields::kVersionPolicy, inner);
  append_number(message, config_fields::kMaxBatchSize, config.max_batch);
  for (const TensorSpec& input : model.inputs)
    append_text(message, config_fields::kInput,
                config_tensor_message(input, has_batches, config_input_fields::kDims));
  for (const TensorSpec& output : model.outputs)
    append_text(message, config_fields::kOutput,
                config_tensor_message(output, has_batches, config_output_fields::kDims));
  inner.clear();
  append_text(inner, instance_group_fields::kName, model.name);
  append_number(inner, instance_group_fields::kCount, config.contexts);
  append_text(message, config_fields::kInstanceGroup, inner);
  if (has_batches) {
    inner.clear();
    const auto delay = std::chrono::duration_cast<std::chrono::microseconds>(config.batch_delay);
    append_number(inner, dynamic_batching_fields::kDelay, static_cast<uint64_t>(delay.count()));
    append_text(message, config_fields::kDynamicBatching, inner);
  }
  append_text(message, config_fields::kFile, config.file.substr(config.file.rfind('/') + 1));
  std::string response;
  append_text(response, config_response_fields::kConfig, message);
  return response;
}

}  // namespace halyard::tools::serve
