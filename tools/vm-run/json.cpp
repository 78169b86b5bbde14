// One function for each kind of value.
#include "json.h"

#include <cctype>
#include <cmath>
#include <cstring>
#include <vector>

#include "contents.h"

namespace halyard::tools {

namespace {

constexpr int kMaximumDepth = 64;  // of lists in lists: one may hold itself

std::string quoted(std::string_view text) { return Block<char>(halyard_json_quote(to_text(text))).get(); }

// The shortest number that reads back as this one.
template <typename T>
std::string number(T value) {
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return quoted(fmt::format("{}", value));
  return fmt::format("{}", value);
}

template <typename T>
std::string element_at(std::span<const uint8_t> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return number(value);
}

// An element as the text has it: a number in JSON's sense, or a string.
std::string element_of_text(std::string_view element) {
  const bool is_negative = element.starts_with('-');
  const std::string_view digits = element.substr(is_negative);
  const bool is_number = !digits.empty() && std::isdigit(static_cast<unsigned char>(digits[0])) &&
                         (digits[0] != '0' || digits.size() == 1 || digits[1] == '.') &&
                         digits.find_first_not_of("0123456789.E+-") == std::string_view::npos;
  return is_number ? std::string(element) : quoted(element);
}

Result<std::string> tensor_json(halyard_object_t view, uint64_t max_elements) {
  const Contents contents = TOOL_TRY(contents_of(view));
  std::string shape;
  for (const int64_t dimension : contents.shape) shape += (shape.empty() ? "" : ", ") + number(dimension);
  const uint64_t count = contents.element_count();
  const uint64_t shown = std::min(count, max_elements);
  const std::string& type = contents.element_type;
  // Bytes that a hexadecimal text could be taken for numbers of.
  const bool is_opaque = type == "i1" || type.starts_with('*') || type.starts_with('c');
  std::vector<std::string_view> texts;
  if (type != "f32" && type != "f64") texts = contents.elements();
  std::string elements;
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) elements += ", ";
    if (type == "f32") {
      elements += element_at<float>(contents.bytes, i);
    } else if (type == "f64") {
      elements += element_at<double>(contents.bytes, i);
    } else {
      elements += is_opaque ? quoted(texts[i]) : element_of_text(texts[i]);
    }
  }
  return fmt::format(
      R"({{"type": "hal.buffer_view", "element_type": {}, "shape": [{}], "elements": [{}]{}}})", quoted(type),
      shape, elements, shown < count ? fmt::format(R"(, "elements_left_out": {})", count - shown) : "");
}

Result<std::string> value_json(const halyard_value_t& value, uint64_t max_elements, int depth);

Result<std::string> list_json(halyard_object_t list, uint64_t max_elements, int depth) {
  if (depth == kMaximumDepth)
    return fail(HALYARD_OUT_OF_RANGE, "lists nest deeper than {}; results like that have no JSON", depth);
  size_t size = 0;
  TOOL_TRY(check(halyard_list_size(list, &size)));
  std::string elements;
  for (size_t i = 0; i < size; ++i) {
    halyard_value_t element = {};
    TOOL_TRY(check(halyard_list_get(list, i, &element)));
    const Handle<halyard_object_t> owned(element.kind == HALYARD_VALUE_OBJECT ? element.object : nullptr);
    elements += (i > 0 ? ", " : "") + TOOL_TRY(value_json(element, max_elements, depth + 1));
  }
  return fmt::format(R"({{"type": "vm.list", "elements": [{}]}})", elements);
}

std::string scalar_json(std::string_view type, const std::string& value) {
  return fmt::format(R"({{"type": "{}", "value": {}}})", type, value);
}

Result<std::string> value_json(const halyard_value_t& value, uint64_t max_elements, int depth) {
  switch (value.kind) {
    case HALYARD_VALUE_I8:
      return scalar_json("i8", number(value.i32));
    case HALYARD_VALUE_I16:
      return scalar_json("i16", number(value.i32));
    case HALYARD_VALUE_I32:
      return scalar_json("i32", number(value.i32));
    case HALYARD_VALUE_I64:
      return scalar_json("i64", number(value.i64));
    case HALYARD_VALUE_F32:
      return scalar_json("f32", number(value.f32));
    case HALYARD_VALUE_F64:
      return scalar_json("f64", number(value.f64));
    default:
      break;
  }
  if (value.kind != HALYARD_VALUE_OBJECT || !value.object) return "null";
  const std::string_view type = halyard_object_type(value.object);
  if (type == "hal.buffer_view") return tensor_json(value.object, max_elements);
  if (type == "vm.list") return list_json(value.object, max_elements, depth);
  return fmt::format(R"({{"type": {}}})", quoted(type));
}

}  // namespace

Result<std::string> results_json(std::string_view function, std::span<const halyard_value_t> results,
                                 uint64_t max_elements) {
  std::string text = fmt::format("{{\n  \"function\": {},\n  \"results\": [", quoted(function));
  for (size_t i = 0; i < results.size(); ++i) {
    const Result<std::string> value = value_json(results[i], max_elements, 0);
    if (!value) return fail(value.error().code, "result[{}]: {}", i, value.error().text);
    text += (i > 0 ? ",\n    " : "\n    ") + *value;
  }
  return text + (results.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace halyard::tools
