// Appends text directly, because a document tree of a large tensor would take many times its memory.
#include "documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "common/json.h"
#include "halyard/small_floats.hpp"

namespace halyard::tools::serve {

namespace {

template <typename T>
T load(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <typename T>
void append_number(std::string& text, T value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  text.append(digits, static_cast<size_t>(end - digits));
}

// The shortest number that parses as the same value. Infinities and NaN are strings, because JSON has no such
// numbers.
template <typename T>
void append_real(std::string& text, T value) {
  if (std::isfinite(value)) {
    append_number(text, value);
  } else {
    text += std::isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  }
}

template <typename Append>
void append_each(std::string& text, std::span<const std::byte> bytes, size_t size, Append&& append) {
  for (size_t i = 0; i + size <= bytes.size(); i += size) {
    if (i > 0) text += ',';
    append(bytes.data() + i);
  }
}

template <typename T>
void append_integers(std::string& text, std::span<const std::byte> bytes) {
  append_each(text, bytes, sizeof(T), [&](const std::byte* at) { append_number(text, load<T>(at)); });
}

void append_elements(std::string& text, const DataType& type, std::span<const std::byte> bytes) {
  switch (type.kind) {
    case NumberKind::boolean:
      return append_each(text, bytes, 1,
                         [&](const std::byte* at) { text += *at != std::byte{0} ? "true" : "false"; });
    case NumberKind::signed_integer:
      switch (type.size) {
        case 1:
          return append_each(text, bytes, 1,
                             [&](const std::byte* at) { append_number(text, int{load<int8_t>(at)}); });
        case 2:
          return append_integers<int16_t>(text, bytes);
        case 4:
          return append_integers<int32_t>(text, bytes);
        default:
          return append_integers<int64_t>(text, bytes);
      }
    case NumberKind::unsigned_integer:
      switch (type.size) {
        case 1:
          return append_each(text, bytes, 1,
                             [&](const std::byte* at) { append_number(text, int{load<uint8_t>(at)}); });
        case 2:
          return append_integers<uint16_t>(text, bytes);
        case 4:
          return append_integers<uint32_t>(text, bytes);
        default:
          return append_integers<uint64_t>(text, bytes);
      }
    case NumberKind::real:
      switch (type.size) {
        case 8:
          return append_each(text, bytes, 8,
                             [&](const std::byte* at) { append_real(text, load<double>(at)); });
        case 4:
          return append_each(text, bytes, 4,
                             [&](const std::byte* at) { append_real(text, load<float>(at)); });
        default: {
          // Every 16-bit float is a float, which has fewer digits than a double.
          using namespace small_floats;
          const bool is_f16 = type.name == "FP16";
          return append_each(text, bytes, 2, [&](const std::byte* at) {
            const auto bits = load<uint16_t>(at);
            append_real(text, is_f16 ? widen<kF16>(bits) : widen<kBf16>(bits));
          });
        }
      }
  }
}

// The maximum number of characters of an element, including its comma.
uint64_t most_text(const DataType& type) {
  if (type.kind == NumberKind::boolean) return sizeof("false,") - 1;
  if (type.kind == NumberKind::real)
    return (type.size == 8 ? sizeof("-2.2250738585072014e-308,") : sizeof("-1.17549435e-38,")) - 1;
  switch (type.size) {
    case 1:
      return sizeof("-128,") - 1;
    case 2:
      return sizeof("-32768,") - 1;
    case 4:
      return sizeof("-2147483648,") - 1;
    default:
      return sizeof("-9223372036854775808,") - 1;
  }
}

void append_shape(std::string& text, std::span<const int64_t> shape) {
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    append_number(text, shape[i]);
  }
  text += ']';
}

void append_names(std::string& text, std::span<const std::string> names) {
  text += '[';
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += ',';
    text += json_string(names[i]);
  }
  text += ']';
}

void append_tensors(std::string& text, std::span<const TensorSpec> tensors) {
  text += '[';
  for (const TensorSpec& tensor : tensors) {
    if (&tensor != tensors.data()) text += ',';
    text += R"({"name":)" + json_string(tensor.name) + R"(,"datatype":")" + std::string(tensor.type->name) +
            R"(","shape":)";
    append_shape(text, tensor.shape);
    text += '}';
  }
  text += ']';
}

std::string_view truth(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string json_string(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, is_plain)) return '"' + std::string(text) + '"';
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string error_document(std::string_view text) { return R"({"error":)" + json_string(text) + "}\n"; }

std::string live_document() { return "{\"live\":true}\n"; }
std::string ready_document(bool is_ready) {
  return fmt::format("{{\"live\":true,\"ready\":{}}}\n", truth(is_ready));
}
std::string model_ready_document(std::string_view model, bool is_ready) {
  return fmt::format("{{\"name\":{},\"ready\":{}}}\n", json_string(model), truth(is_ready));
}

std::string server_document(std::string_view version) {
  std::string text =
      R"({"name":"halyard","version":)" + json_string(version) + R"(,"extensions":["binary_tensor_data")";
  for (const std::string_view extension : kExtensions) text += "," + json_string(extension);
  return text + "]}\n";
}

std::string models_document(std::span<const std::string> names) {
  std::string text = R"({"models":)";
  append_names(text, names);
  return text + "}\n";
}

std::string model_document(const ModelSpec& model, std::span<const std::string> versions) {
  std::string text = R"({"name":)" + json_string(model.name) + R"(,"versions":)";
  append_names(text, versions);
  text += R"(,"platform":"iree_vmfb","inputs":)";
  append_tensors(text, model.inputs);
  text += R"(,"outputs":)";
  append_tensors(text, model.outputs);
  return text + "}\n";
}

uint64_t infer_document_bound(const ModelSpec& model, const std::optional<std::string>& id,
                              std::span<const OutputTensor> outputs) {
  constexpr uint64_t kFrame = 256, kEscaped = 6, kDigits = 21;
  uint64_t size = kFrame + kEscaped * (model.name.size() + model.version.size() + (id ? id->size() : 0));
  for (const OutputTensor& output : outputs) {
    size += kFrame + kEscaped * output.spec->name.size() + kDigits * output.shape.size();
    if (!output.is_binary)
      size += output.bytes.size() / output.spec->type->size * most_text(*output.spec->type);
  }
  return size;
}

std::string infer_document(const ModelSpec& model, const std::optional<std::string>& id,
                           std::span<const OutputTensor> outputs) {
  std::string text;
  text.reserve(infer_document_bound(model, id, outputs));  // unused pages take no memory
  text += R"({"model_name":)" + json_string(model.name) + R"(,"model_version":)" + json_string(model.version);
  if (id) text += R"(,"id":)" + json_string(*id);
  text += R"(,"outputs":[)";
  for (const OutputTensor& output : outputs) {
    if (&output != outputs.data()) text += ',';
    text += R"({"name":)" + json_string(output.spec->name) + R"(,"shape":)";
    append_shape(text, output.shape);
    text += R"(,"datatype":")" + std::string(output.spec->type->name) + '"';
    if (output.is_binary) {
      text += R"(,"parameters":{"binary_data_size":)";
      append_number(text, output.bytes.size());
      text += "}}";
    } else {
      text += R"(,"data":[)";
      append_elements(text, *output.spec->type, output.bytes);
      text += "]}";
    }
  }
  return text + "]}";
}

}  // namespace halyard::tools::serve
