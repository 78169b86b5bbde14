// One function for each kind of value.
#include "json.h"

#include <cstring>
#include <vector>

#include "common/json.h"
#include "contents.h"

namespace halyard::tools {

namespace {

template <typename T>
Json element_at(std::span<const uint8_t> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return json_number(value);
}

// Elements of other types are printed as hexadecimal bytes, which can look like numbers.
bool is_printed_as_number(std::string_view element_type) {
  enum : uint32_t {
#define HALYARD_NUMERICAL_TYPE(name, value, ...) k##name = value,
#include "halyard/element_types.inc"
  };
  struct Type {
    std::string_view text;
    bool is_number;
  };
  static constexpr Type kTypes[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, ...) \
  {text, bits >= 8 && k##numerical != kOpaque && k##numerical != kBoolean && k##numerical != kFloatComplex},
#include "halyard/element_types.inc"
  };
  const auto* const found = std::ranges::find(kTypes, element_type, &Type::text);
  return found != std::end(kTypes) && found->is_number;
}

// An element as it is printed: a number if JSON has such a number, else a string.
Json element_of_text(std::string_view element) {
  if (element == "-0") return -0.0;  // not the whole number
  Json value = Json::parse(element, nullptr, false);
  return value.is_number() ? value : Json(element);
}

// Reads no more than it shows: a list may have one large tensor many times.
Result<Json> tensor_json(halyard_object_t view, uint64_t max_elements) {
  const Contents whole = TOOL_TRY(type_and_shape_of(view));
  const uint64_t count = whole.element_count();
  const uint64_t shown = std::min(count, max_elements);
  const Handle<halyard_object_t> first = TOOL_TRY(first_elements_of(view, shown));
  const std::string& type = whole.element_type;
  const bool is_number = is_printed_as_number(type);
  const bool has_text = type != "f32" && type != "f64";
  const std::string text = has_text ? TOOL_TRY(text_of(first.get())) : "";
  const std::vector<uint8_t> bytes =
      has_text ? std::vector<uint8_t>() : TOOL_TRY(contents_of(first.get())).bytes;
  const std::vector<std::string_view> texts = elements_of(text);
  Json elements = Json::array();
  for (uint64_t i = 0; i < shown; ++i) {
    if (type == "f32") {
      elements.push_back(element_at<float>(bytes, i));
    } else if (type == "f64") {
      elements.push_back(element_at<double>(bytes, i));
    } else {
      elements.push_back(is_number ? element_of_text(texts[i]) : Json(texts[i]));
    }
  }
  Json tensor = {{"type", "hal.buffer_view"},
                 {"element_type", type},
                 {"shape", whole.shape},
                 {"elements", std::move(elements)}};
  if (shown < count) tensor["elements_left_out"] = count - shown;
  return tensor;
}

// `left`: elements that lists may still show; a list may have one tensor many times.
Result<Json> value_json(const halyard_value_t& value, uint64_t max_elements, uint64_t& left);

// The list has been checked: it is not too deep, and has not too many elements.
Result<Json> list_json(halyard_object_t list, uint64_t max_elements, uint64_t& left) {
  size_t size = 0;
  TOOL_TRY(check(halyard_list_size(list, &size)));
  Json elements = Json::array();
  for (size_t i = 0; i < size; ++i) {
    halyard_value_t element = {};
    TOOL_TRY(check(halyard_list_get(list, i, &element)));
    const Handle<halyard_object_t> owned(element.kind == HALYARD_VALUE_OBJECT ? element.object : nullptr);
    const uint64_t at_most = std::min(max_elements, left);
    Json shown = TOOL_TRY(value_json(element, at_most, left));
    if (const auto numbers = shown.find("elements"); numbers != shown.end() && shown["type"] != "vm.list")
      left -= numbers->size();
    elements.push_back(std::move(shown));
  }
  return Json{{"type", "vm.list"}, {"elements", std::move(elements)}};
}

Json scalar_json(std::string_view type, Json value) { return {{"type", type}, {"value", std::move(value)}}; }

Result<Json> value_json(const halyard_value_t& value, uint64_t max_elements, uint64_t& left) {
  switch (value.kind) {
    case HALYARD_VALUE_I8:
      return scalar_json("i8", value.i32);
    case HALYARD_VALUE_I16:
      return scalar_json("i16", value.i32);
    case HALYARD_VALUE_I32:
      return scalar_json("i32", value.i32);
    case HALYARD_VALUE_I64:
      return scalar_json("i64", value.i64);
    case HALYARD_VALUE_F32:
      return scalar_json("f32", json_number(value.f32));
    case HALYARD_VALUE_F64:
      return scalar_json("f64", json_number(value.f64));
    default:
      break;
  }
  if (value.kind != HALYARD_VALUE_OBJECT || !value.object) return Json();
  const std::string_view type = halyard_object_type(value.object);
  if (type == "hal.buffer_view") return tensor_json(value.object, max_elements);
  if (type == "vm.list") return list_json(value.object, max_elements, left);
  return Json{{"type", type}};
}

}  // namespace

Result<std::string> results_json(std::string_view function, std::span<const halyard_value_t> results,
                                 uint64_t max_elements) {
  constexpr int kLines = 2;  // each result on one
  Json values = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind == HALYARD_VALUE_OBJECT && results[i].object &&
        std::string_view(halyard_object_type(results[i].object)) == "vm.list") {
      Result<> bounded =
          check(halyard_list_check(results[i].object, HALYARD_LIST_MAX_DEPTH, HALYARD_LIST_MAX_ELEMENTS));
      if (!bounded) return fail(bounded.error().code, "result[{}]: {}", i, bounded.error().text);
    }
    uint64_t left = HALYARD_LIST_MAX_ELEMENTS;
    Result<Json> value = value_json(results[i], max_elements, left);
    if (!value) return fail(value.error().code, "result[{}]: {}", i, value.error().text);
    values.push_back(*std::move(value));
  }
  return json_document({{"function", function}, {"results", std::move(values)}}, kLines);
}

}  // namespace halyard::tools
