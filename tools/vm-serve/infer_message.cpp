// Fields may come in any order, so the message is read once for each purpose.
#include "infer_message.h"

#include <algorithm>

#include "budget.h"
#include "grpc_fields.h"
#include "tensor_contents.h"

namespace halyard::tools::serve {

namespace {

constexpr uint64_t kMaxFieldText = 1 << 20;  // bytes

std::unexpected<Failure> malformed_message() {
  return fail(HALYARD_INVALID_ARGUMENT, "the request is not a message ModelInferRequest of protocol buffers");
}

// Moves to the next field of bytes with this number. False: there is none.
bool next_of(WireReader& reader, uint32_t field) {
  while (reader.next())
    if (reader.is(field, WireType::bytes)) return true;
  return false;
}

size_t count_of(WireReader reader, uint32_t field) {
  size_t count = 0;
  while (next_of(reader, field)) ++count;
  return count;
}

struct InputFields {
  std::string name;
  std::string datatype;
  bool has_datatype = false;
  std::vector<int64_t> shape;
  bool has_contents = false;
};

Result<> read_shape(const WireReader& field, std::string_view name, std::vector<int64_t>& shape) {
  const auto add = [&](uint64_t number) -> Result<> {
    const auto size = static_cast<int64_t>(number);
    if (size < 0)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "'shape' of input '{}' has the dimension {}; expected numbers from 0 on", name, size);
    if (shape.size() == kMaxDimensions)
      return fail(HALYARD_INVALID_ARGUMENT, "'shape' of input '{}' has more than {} dimensions", name,
                  kMaxDimensions);
    shape.push_back(size);
    return {};
  };
  if (field.type() == WireType::varint) return add(field.number());
  if (field.type() != WireType::bytes) return malformed_message();
  WireReader packed = field.content();
  while (packed.size() > 0) {
    uint64_t number = 0;
    if (!packed.read_varint(&number)) return malformed_message();
    TOOL_TRY(add(number));
  }
  return {};
}

Result<InputFields> read_fields(WireReader input) {
  InputFields fields;
  while (input.next()) {
    if (input.is(tensor_fields::kName, WireType::bytes)) {
      fields.name = TOOL_TRY(read_text(input.content(), "name"));
    } else if (input.is(tensor_fields::kDatatype, WireType::bytes)) {
      fields.datatype = TOOL_TRY(read_text(input.content(), "datatype"));
    } else if (input.field() == tensor_fields::kShape) {
      TOOL_TRY(read_shape(input, fields.name, fields.shape));
    } else if (input.is(tensor_fields::kContents, WireType::bytes)) {
      fields.has_contents |= input.content().size() > 0;
    }
  }
  if (input.is_malformed()) return malformed_message();
  return fields;
}

class MessageReader {
 public:
  MessageReader(const ModelSpec& model, const Reserve& reserve) : builder_(model), reserve_(reserve) {}

  // `raw`: the content of the input in raw_input_contents.
  Result<> input(const WireReader& message, std::optional<WireReader> raw) {
    const InputFields fields = TOOL_TRY(read_fields(message));
    const DataType* const type =
        fields.datatype.empty() ? nullptr
                                : TOOL_TRY(InferRequestBuilder::type_named(fields.datatype, fields.name));
    RequestInput input;
    input.shape = fields.shape;
    TOOL_TRY(builder_.check(input, fields.name, type, true));
    if (raw) {
      if (fields.has_contents)
        return fail(HALYARD_INVALID_ARGUMENT,
                    "input '{}' has both 'contents' and 'raw_input_contents'; expected one of them",
                    fields.name);
      TOOL_TRY(take_raw(input, *raw, *type, fields.name));
    } else {
      TOOL_TRY(take_contents(input, message, *type, fields.name));
    }
    builder_.add(std::move(input));
    return {};
  }

  Result<> output(WireReader message) {
    std::string name;
    while (message.next())
      if (message.is(tensor_fields::kName, WireType::bytes))
        name = TOOL_TRY(read_text(message.content(), "name"));
    if (message.is_malformed()) return malformed_message();
    return builder_.add_output(name);
  }

  Result<InferRequest> finish() { return builder_.finish(); }

 private:
  Result<> allocate(RequestInput& input) {
    if (reserve_ && !reserve_(input.byte_size)) return fail(HALYARD_UNAVAILABLE, "{}", kNoRoom);
    if (!input.data.resize(input.byte_size))
      return fail(HALYARD_RESOURCE_EXHAUSTED, "out of memory for the request's tensors");
    return {};
  }

  Result<> take_raw(RequestInput& input, WireReader raw, const DataType& type, std::string_view name) {
    if (raw.size() != input.byte_size)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "input '{}' has {} bytes in 'raw_input_contents', but its shape {} of {} has {}", name,
                  raw.size(), shape_text(input.shape), type.name, input.byte_size);
    TOOL_TRY(allocate(input));
    raw.read(input.data.data(), input.byte_size);
    make_truth_values(input.data.span(), type);
    return {};
  }

  Result<> take_contents(RequestInput& input, const WireReader& message, const DataType& type,
                         std::string_view name) {
    const uint64_t count = TOOL_TRY(count_contents(message, type, name)),
                   expected = input.byte_size / type.size;
    if (count != expected)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "'contents' of input '{}' have {} elements, but its shape {} has {}", name, count,
                  shape_text(input.shape), expected);
    TOOL_TRY(allocate(input));
    return read_contents(message, type, name, input.data.data());
  }

  InferRequestBuilder builder_;
  const Reserve& reserve_;
};

}  // namespace

Result<std::string> read_text(WireReader content, std::string_view field) {
  if (content.size() > kMaxFieldText)
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' has {} bytes; expected at most {}", field, content.size(),
                kMaxFieldText);
  std::string text(content.size(), '\0');
  content.read(text.data(), text.size());
  return text;
}

Result<InferMessageHead> read_infer_head(WireReader message) {
  InferMessageHead head;
  while (message.next()) {
    if (message.type() != WireType::bytes) continue;
    switch (message.field()) {
      case infer_request_fields::kModelName:
        head.model = TOOL_TRY(read_text(message.content(), "model_name"));
        break;
      case infer_request_fields::kModelVersion:
        head.version = TOOL_TRY(read_text(message.content(), "model_version"));
        break;
      case infer_request_fields::kId:
        head.id = TOOL_TRY(read_text(message.content(), "id"));
        break;
      case infer_request_fields::kRawInputContents:
        head.has_raw = true;
        break;
      default:
        break;
    }
  }
  if (message.is_malformed()) return malformed_message();
  return head;
}

Result<InferRequest> parse_infer_message(const WireReader& message, const ModelSpec& model,
                                         const Reserve& reserve) {
  const size_t inputs = count_of(message, infer_request_fields::kInputs),
               raws = count_of(message, infer_request_fields::kRawInputContents);
  if (raws != 0 && raws != inputs)
    return fail(HALYARD_INVALID_ARGUMENT,
                "the request has {} inputs and {} 'raw_input_contents'; expected one for each input, or none",
                inputs, raws);
  MessageReader reader(model, reserve);
  WireReader fields = message, contents = message;
  bool has_outputs = false;
  while (fields.next()) {
    if (fields.is(infer_request_fields::kInputs, WireType::bytes)) {
      std::optional<WireReader> raw;
      if (raws != 0 && next_of(contents, infer_request_fields::kRawInputContents)) raw = contents.content();
      TOOL_TRY(reader.input(fields.content(), raw));
    } else if (fields.is(infer_request_fields::kOutputs, WireType::bytes)) {
      has_outputs = true;
      TOOL_TRY(reader.output(fields.content()));
    }
  }
  if (fields.is_malformed()) return malformed_message();
  InferRequest request = TOOL_TRY(reader.finish());
  if (!has_outputs)
    for (size_t i = 0; i < model.outputs.size(); ++i) request.outputs.push_back({i, false});
  return request;
}

uint64_t InferAnswer::size() const {
  uint64_t size = 0;
  for (const Part& part : parts) size += part.text.size() + part.bytes.size();
  return size;
}

InferAnswer infer_answer(const ModelSpec& model, std::string_view id, std::span<const OutputTensor> outputs,
                         bool is_raw) {
  is_raw |= std::ranges::any_of(outputs,
                                [](const OutputTensor& output) { return !has_contents(*output.spec->type); });
  InferAnswer answer;
  answer.parts.reserve(1 + outputs.size());
  answer.parts.emplace_back();
  const auto text = [&]() -> std::string& { return answer.parts.back().text; };
  const auto add_bytes = [&](std::span<const std::byte> bytes) {
    answer.parts.back().bytes = bytes;
    answer.parts.emplace_back();
  };
  append_text(text(), infer_response_fields::kModelName, model.name);
  append_text(text(), infer_response_fields::kModelVersion, model.version);
  if (!id.empty()) append_text(text(), infer_response_fields::kId, id);
  for (const OutputTensor& output : outputs) {
    std::string fields;
    append_text(fields, tensor_fields::kName, output.spec->name);
    append_text(fields, tensor_fields::kDatatype, output.spec->type->name);
    append_numbers(fields, tensor_fields::kShape, output.shape);
    if (is_raw) {
      append_text(text(), infer_response_fields::kOutputs, fields);
      continue;
    }
    const WrittenContents contents = write_contents(*output.spec->type, output.bytes);
    const uint64_t size = contents.text.size() + (contents.has_bytes ? output.bytes.size() : 0);
    append_head(text(), infer_response_fields::kOutputs, fields.size() + size_of_field(size));
    text() += fields;
    append_head(text(), tensor_fields::kContents, size);
    text() += contents.text;
    if (contents.has_bytes) add_bytes(output.bytes);
  }
  if (!is_raw) return answer;
  for (const OutputTensor& output : outputs) {
    append_head(text(), infer_response_fields::kRawOutputContents, output.bytes.size());
    if (!output.bytes.empty()) add_bytes(output.bytes);
  }
  return answer;
}

uint64_t infer_answer_bound(const ModelSpec& model, std::string_view id,
                            std::span<const OutputTensor> outputs) {
  constexpr uint64_t kFrame = 64, kMaxVarint = 10;
  uint64_t size = kFrame + model.name.size() + model.version.size() + id.size();
  for (const OutputTensor& output : outputs)
    size += kFrame + output.spec->name.size() + kMaxVarint * output.shape.size() +
            contents_bound(*output.spec->type, output.bytes.size());
  return size;
}

}  // namespace halyard::tools::serve
