// One function for each kind of value.
#include "json.h"

#include <cstring>
#include <vector>

#include "common/contents.h"

namespace halyard::tools {

namespace {

template <typename T>
Json element_at(std::span<const uint8_t> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return json_number(value);
}

// Elements of other types are printed as hexadecimal bytes, even if these look like numbers.
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

// A printed element as a number if JSON has such a number, else as a string.
Json element_of_text(std::string_view element) {
  if (element == "-0") return -0.0;  // not the integer 0
  Json value = Json::parse(element, nullptr, false);
  return value.is_number() ? value : Json(element);
}

// Reads only the elements that it shows, because a list may contain one large tensor many times.
Result<Json> tensor_json(const Tensor& view, uint64_t max_elements) {
  const Contents whole = TOOL_TRY(type_and_shape_of(view));
  const uint64_t count = whole.element_count();
  const uint64_t shown = std::min(count, max_elements);
  const Tensor first = TOOL_TRY(first_elements_of(view, shown));
  const std::string& type = whole.element_type;
  const bool is_number = is_printed_as_number(type);
  const bool has_text = type != "f32" && type != "f64";
  const std::string text = has_text ? TOOL_TRY(text_of(first)) : "";
  const std::vector<uint8_t> bytes = has_text ? std::vector<uint8_t>() : TOOL_TRY(contents_of(first)).bytes;
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

// `left`: the number of elements that lists may still show, because a list may contain one tensor many times.
Result<Json> value_json(const Value& value, uint64_t max_elements, uint64_t& left);

// Precondition: the list is neither too deep nor too long.
Result<Json> list_json(const halyard::List& list, uint64_t max_elements, uint64_t& left) {
  const size_t size = TOOL_TRY(list.size());
  Json elements = Json::array();
  for (size_t i = 0; i < size; ++i) {
    const uint64_t at_most = std::min(max_elements, left);
    Json shown = TOOL_TRY(value_json(TOOL_TRY(list[i]), at_most, left));
    if (const auto numbers = shown.find("elements"); numbers != shown.end() && shown["type"] != "vm.list")
      left -= numbers->size();
    elements.push_back(std::move(shown));
  }
  return Json{{"type", "vm.list"}, {"elements", std::move(elements)}};
}

Json scalar_json(std::string_view type, Json value) { return {{"type", type}, {"value", std::move(value)}}; }

Result<Json> value_json(const Value& value, uint64_t max_elements, uint64_t& left) {
  const halyard_value_t& raw = value.raw();
  switch (raw.kind) {
    case HALYARD_VALUE_I8:
      return scalar_json("i8", raw.i32);
    case HALYARD_VALUE_I16:
      return scalar_json("i16", raw.i32);
    case HALYARD_VALUE_I32:
      return scalar_json("i32", raw.i32);
    case HALYARD_VALUE_I64:
      return scalar_json("i64", raw.i64);
    case HALYARD_VALUE_F32:
      return scalar_json("f32", json_number(raw.f32));
    case HALYARD_VALUE_F64:
      return scalar_json("f64", json_number(raw.f64));
    default:
      break;
  }
  if (value.is_null()) return Json();
  const Object object = value.object();
  if (object.type() == "hal.buffer_view") return tensor_json(Tensor(share, object.get()), max_elements);
  if (object.type() == "vm.list") return list_json(halyard::List(share, object.get()), max_elements, left);
  return Json{{"type", object.type()}};
}

}  // namespace

Result<std::string> results_json(std::string_view function, std::span<const Value> results,
                                 uint64_t max_elements, const Json& profile) {
  constexpr int kLines = 2;         // depth of a document with one line for each result
  constexpr int kProfileLines = 3;  // with one line for each row of the profile
  Json values = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    if (const Object object = results[i].object(); object.type() == "vm.list") {
      const Result<> bounded = check(halyard::List(share, object.get()).check());
      if (!bounded) return fail(bounded.error().code, "result[{}]: {}", i, bounded.error().text);
    }
    uint64_t left = HALYARD_LIST_MAX_ELEMENTS;
    Result<Json> value = value_json(results[i], max_elements, left);
    if (!value) return fail(value.error().code, "result[{}]: {}", i, value.error().text);
    values.push_back(*std::move(value));
  }
  Json document = {{"function", function}, {"results", std::move(values)}};
  if (!profile.is_null()) document["profile"] = profile;
  return json_document(document, profile.is_null() ? kLines : kProfileLines);
}

}  // namespace halyard::tools
