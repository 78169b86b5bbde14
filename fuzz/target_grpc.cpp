// An arbitrary message ModelInferRequest, for a model with every type of the protocol. It is read the same
// way however its bytes are cut, it takes no more memory than eight times its bytes, and accepted requests
// are consistent; written answers can be read again.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "fuzzing.h"
#include "infer_message.h"
#include "serve_models.h"
#include "tensor_contents.h"

using namespace halyard::tools::serve;
using halyard::fuzz::finding;

namespace {

using Bytes = std::span<const std::byte>;

// The message in pieces of this size, each in memory of its own, so that a read beyond it is detected.
struct Pieces {
  std::vector<std::vector<std::byte>> memory;
  std::vector<WireReader::Piece> pieces;

  Pieces(Bytes message, size_t size) {
    for (; !message.empty(); message = message.subspan(std::min(size, message.size())))
      memory.emplace_back(message.begin(),
                          message.begin() + static_cast<ptrdiff_t>(std::min(size, message.size())));
    for (const auto& each : memory) pieces.emplace_back(each);
  }
  WireReader reader() const { return WireReader(pieces); }
};

struct Outcome {
  halyard::tools::Result<InferRequest> request;
  uint64_t reserved = 0;
};

Outcome outcome_of(Bytes message, size_t piece, const ModelSpec& model) {
  const Pieces pieces(message, piece);
  uint64_t reserved = 0;
  if (const auto head = read_infer_head(pieces.reader()); !head)
    return {.request = std::unexpected(head.error())};
  auto request =
      parse_infer_message(pieces.reader(), model, [&](uint64_t bytes) { return reserved += bytes, true; });
  return {.request = std::move(request), .reserved = reserved};
}

void check_same(const Outcome& one, const Outcome& two) {
  if (one.request.has_value() != two.request.has_value())
    finding("accepted in one division into pieces only");
  if (!one.request) {
    if (one.request.error().text != two.request.error().text) finding("another message in other pieces");
    return;
  }
  for (size_t i = 0; i < one.request->inputs.size(); ++i)
    if (!std::ranges::equal(one.request->inputs[i].data.span(), two.request->inputs[i].data.span()))
      finding("other numbers in other pieces");
}

// The contents of the one output of an answer.
void check_answer(const InferAnswer& answer, const OutputTensor& output, bool is_raw) {
  std::string text;
  for (const auto& part : answer.parts)
    text.append(part.text).append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  const Pieces pieces(std::as_bytes(std::span(text)), text.size());
  const DataType& type = *output.spec->type;
  for (WireReader reader = pieces.reader(); reader.next();) {
    constexpr uint32_t kOutputs = 5, kRaw = 6;
    if (is_raw && reader.field() == kRaw && reader.content().size() != output.bytes.size())
      finding("a raw answer of another size");
    if (is_raw || reader.field() != kOutputs) continue;
    const auto count = count_contents(reader.content(), type, "x");
    if (!count || *count * type.size != output.bytes.size())
      finding("an answer with another number of elements");
    std::vector<std::byte> read(output.bytes.size());
    if (!read_contents(reader.content(), type, "x", read.data())) finding("an answer that cannot be read");
    if (!std::ranges::equal(read, output.bytes)) finding("an answer with other numbers");
  }
}

void check_request(const InferRequest& request, const ModelSpec& model) {
  if (request.inputs.size() != model.inputs.size()) finding("an input is missing");
  for (const RequestInput& input : request.inputs) {
    const TensorSpec& spec = model.inputs[input.index];
    const auto count = element_count(input.shape, spec.type->size);
    if (!count || *count * spec.type->size != input.byte_size || input.data.size() != input.byte_size)
      finding("a tensor of another size than its shape");
    const OutputTensor output = {
        .spec = &spec, .shape = input.shape, .bytes = input.data.span(), .is_binary = false};
    for (const bool is_raw : {false, true})
      check_answer(infer_answer(model, "id", {&output, 1}, is_raw), output,
                   is_raw || !has_contents(*spec.type));
  }
  for (const RequestOutput& output : request.outputs)
    if (output.index >= model.outputs.size()) finding("an output that the model has not");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<ModelSpec> models = halyard::fuzz::make_models();
  if (size < 2) return 0;
  const ModelSpec& model = models[data[0] % models.size()];
  const size_t piece = data[1] == 0 ? 1 : data[1];
  const Bytes message = std::as_bytes(std::span(data, size)).subspan(2);
  const Outcome whole = outcome_of(message, std::max<size_t>(message.size(), 1), model);
  check_same(whole, outcome_of(message, piece, model));
  constexpr uint64_t kMostPerByte = 8;
  if (whole.reserved > kMostPerByte * message.size()) finding("more memory than eight times the message");
  if (whole.request)
    check_request(*whole.request, model);
  else if (whole.request.error().text.empty())
    finding("a failure without a message");
  return 0;
}
