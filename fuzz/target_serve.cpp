// An arbitrary path, or an arbitrary inference request for a model with every type of the protocol. Accepted
// requests must be consistent, must contain the numbers that another parser finds, and must have a JSON
// answer.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "documents.h"
#include "fuzzing.h"
#include "halyard/small_floats.hpp"
#include "infer_json.h"
#include "route.h"
#include "serve_models.h"

using namespace halyard::tools::serve;

namespace {

using Document = nlohmann::json;

// The objects of the protocol, by their place in a request.
enum class Place { request, request_parameters, tensor, tensor_parameters };

std::optional<Place> place_below(Place place, std::string_view member) {
  if (place == Place::request && (member == "inputs" || member == "outputs")) return Place::tensor;
  if (place == Place::request && member == "parameters") return Place::request_parameters;
  if (place == Place::tensor && member == "parameters") return Place::tensor_parameters;
  return std::nullopt;
}

bool is_member_of(Place place, const std::string& name) {
  static const std::map<Place, std::set<std::string>> known = {
      {Place::request, {"id", "inputs", "outputs", "parameters"}},
      {Place::request_parameters, {"binary_data_output"}},
      {Place::tensor, {"name", "datatype", "shape", "data", "parameters"}},
      {Place::tensor_parameters, {"binary_data_size", "binary_data"}}};
  return known.at(place).contains(name);
}

// Whether an object has a member of the protocol twice. Requests with other members are not checked, because
// these may have any contents.
bool has_member_twice(std::string_view json) {
  struct Open {
    Place place;
    std::set<std::string> members;
    std::string member;  // the last one
  };
  std::vector<Open> open;
  bool is_twice = false, is_strange = false;
  [[maybe_unused]] const Document parsed =
      Document::parse(json, [&](int, Document::parse_event_t event, Document& value) {
        if (is_strange) return true;
        if (event == Document::parse_event_t::object_start) {
          const std::optional<Place> place =
              open.empty() ? Place::request : place_below(open.back().place, open.back().member);
          is_strange = !place;
          if (place) open.push_back({.place = *place, .members = {}, .member = ""});
        }
        if (event == Document::parse_event_t::object_end) open.pop_back();
        if (event == Document::parse_event_t::key) {
          Open& object = open.back();
          object.member = value.get<std::string>();
          is_strange = !is_member_of(object.place, object.member);
          is_twice |= !object.members.insert(object.member).second;
        }
        return true;
      });
  return is_twice && !is_strange;
}

void flatten(const Document& value, std::vector<const Document*>& elements) {
  if (!value.is_array()) return elements.push_back(&value);
  for (const Document& each : value) flatten(each, elements);
}

template <typename T>
bool is_integer(const Document& value, const std::byte* stored) {
  T number = 0;
  std::memcpy(&number, stored, sizeof number);
  if (value.is_boolean()) return number == static_cast<T>(value.get<bool>());
  if (value.is_number_unsigned()) return std::cmp_equal(number, value.get<uint64_t>());
  if (value.is_number_integer()) return std::cmp_equal(number, value.get<int64_t>());
  constexpr double kInexact = 0x1p53;  // from here on, different integers have the same double
  const auto real = value.get<double>();
  return value.is_number_float() && std::fabs(real) < kInexact && static_cast<double>(number) == real;
}

bool is_stored(const DataType& type, const Document& value, const std::byte* stored) {
  if (type.kind != NumberKind::real) {
    const bool is_signed = type.kind == NumberKind::signed_integer;
    switch (type.size) {
      case 1:
        return is_signed ? is_integer<int8_t>(value, stored) : is_integer<uint8_t>(value, stored);
      case 2:
        return is_signed ? is_integer<int16_t>(value, stored) : is_integer<uint16_t>(value, stored);
      case 4:
        return is_signed ? is_integer<int32_t>(value, stored) : is_integer<uint32_t>(value, stored);
      default:
        return is_signed ? is_integer<int64_t>(value, stored) : is_integer<uint64_t>(value, stored);
    }
  }
  double number = 0;
  uint16_t half = 0;
  float single = 0;
  if (type.size == 2) {
    std::memcpy(&half, stored, sizeof half);
    number = type.name == "FP16" ? halyard::small_floats::widen<halyard::small_floats::kF16>(half)
                                 : halyard::small_floats::widen<halyard::small_floats::kBf16>(half);
  } else if (type.size == 4) {
    std::memcpy(&single, stored, sizeof single);
    number = single;
  } else {
    std::memcpy(&number, stored, sizeof number);
  }
  if (value.is_string()) return !std::isfinite(number);
  if (!value.is_number()) return false;
  const auto expected = value.get<double>();
  // Equal within a unit in the last place of the type.
  const double unit = type.size == 8        ? 0x1p-52
                      : type.size == 4      ? 0x1p-23
                      : type.name == "FP16" ? 0x1p-10
                                            : 0x1p-7;
  const double least = type.size == 8        ? 0x1p-1074
                       : type.size == 4      ? 0x1p-149
                       : type.name == "FP16" ? 0x1p-24
                                             : 0x1p-133;
  return std::fabs(number - expected) <= std::max(std::fabs(expected) * unit, least);
}

// Checks the values against another JSON parser, which takes the last of two members with one name.
void check_values(std::string_view json, const InferRequest& request, const ModelSpec& model) {
  if (has_member_twice(json)) halyard::fuzz::finding("a request was accepted that has a member twice");
  const Document document = Document::parse(json);
  const Document& inputs = document["inputs"];
  if (inputs.size() != request.inputs.size()) halyard::fuzz::finding("other inputs than in the text");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RequestInput& input = request.inputs[i];
    const TensorSpec& spec = model.inputs[input.index];
    if (inputs[i]["name"] != spec.name) halyard::fuzz::finding("an input under another name");
    std::vector<int64_t> shape;
    for (const Document& size : inputs[i]["shape"]) shape.push_back(size.get<int64_t>());
    if (shape != input.shape) halyard::fuzz::finding("another shape than in the text");
    const DataType* const type = datatype_named(inputs[i]["datatype"].get<std::string>());
    if (!type || !is_accepted(spec.element_type, *type))
      halyard::fuzz::finding("another type than in the text");
    if (input.is_binary) {
      if (inputs[i]["parameters"]["binary_data_size"].get<double>() != static_cast<double>(input.byte_size))
        halyard::fuzz::finding("another size than in the text");
      continue;
    }
    std::vector<const Document*> elements;
    for (const Document& each : inputs[i]["data"]) flatten(each, elements);
    if (elements.size() * type->size != input.data.size())
      halyard::fuzz::finding("another number of elements than in the text");
    for (size_t k = 0; k < elements.size(); ++k)
      if (!is_stored(*type, *elements[k], input.data.data() + k * type->size))
        halyard::fuzz::finding("another number than in the text");
  }
}

void check_request(std::string_view json, const ModelSpec& model) {
  auto request = parse_infer_request(json, model);
  if (!request) {
    if (request.error().text.empty()) halyard::fuzz::finding("a failure without a message");
    if (!nlohmann::json::accept(error_document(request.error().text)))
      halyard::fuzz::finding("an error that is no JSON");
    return;
  }
  const std::string_view text = json.starts_with("\xEF\xBB\xBF") ? json.substr(3) : json;
  if (nlohmann::json::accept(text)) {
    check_values(text, *request, model);
  } else if (!json.contains("NaN") && !json.contains("Inf")) {
    halyard::fuzz::finding("a request was accepted that is no JSON");
  }
  if (request->inputs.size() != model.inputs.size()) halyard::fuzz::finding("an input is missing");
  std::vector<OutputTensor> outputs;
  for (const RequestInput& input : request->inputs) {
    const TensorSpec& spec = model.inputs[input.index];
    const auto count = element_count(input.shape, spec.type->size);
    if (!count || *count * spec.type->size != input.byte_size)
      halyard::fuzz::finding("a tensor of another size than its shape");
    if (input.is_binary ? input.data.size() != 0 : input.data.size() != input.byte_size)
      halyard::fuzz::finding("a tensor has not as many bytes as it says");
    if (!input.is_binary)
      outputs.push_back(
          {.spec = &spec, .shape = input.shape, .bytes = input.data.span(), .is_binary = false});
  }
  for (const RequestOutput& output : request->outputs)
    if (output.index >= model.outputs.size()) halyard::fuzz::finding("an output that the model has not");
  if (!nlohmann::json::accept(infer_document(model, request->id, outputs)))
    halyard::fuzz::finding("an answer that is no JSON");
}

}  // namespace

namespace {

// The begin and end of an object's members in a text that may be JSON.
struct Member {
  size_t begin, end;
};

std::vector<Member> members_of(std::string_view text) {
  std::vector<Member> members;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"' || i == 0 || (text[i - 1] != '{' && text[i - 1] != ',')) continue;
    const size_t quote = text.find('"', i + 1);
    if (quote == std::string_view::npos || !text.substr(quote + 1).starts_with(':')) continue;
    size_t end = quote + 2;
    int depth = 0;
    for (bool is_in_string = false; end < text.size(); ++end) {
      const char c = text[end];
      if (c == '"') is_in_string = !is_in_string;
      if (is_in_string) continue;
      if (c == '[' || c == '{') ++depth;
      if (c == ']' || c == '}') --depth;
      if (depth < 0 || (depth == 0 && c == ',')) break;
    }
    members.push_back({i, end});
  }
  return members;
}

}  // namespace

// Sometimes repeats or moves a member, or gives it the type of another tensor, because random bytes rarely
// do.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  constexpr unsigned kOneOf = 4;
  if (size == 0 || seed % kOneOf != 0) return LLVMFuzzerMutate(data, size, max_size);
  seed /= kOneOf;
  const auto draw = [&seed](size_t count) {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<size_t>(seed >> 8) % count;
  };
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto members = members_of(text);
  if (members.empty()) return LLVMFuzzerMutate(data, size, max_size);
  const Member from = members[draw(members.size())];
  std::string copy = text.substr(from.begin, from.end - from.begin);
  if (copy.starts_with("\"datatype\"") && draw(2) == 0) {
    copy = "\"datatype\":\"";
    copy += datatypes()[draw(datatypes().size())].name;
    copy += '"';
  }
  const Member to = members[draw(members.size())];
  const bool is_behind = draw(2) == 0;
  text.insert(is_behind ? to.end : to.begin, is_behind ? "," + copy : copy + ",");
  if (text.size() + 1 > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data + 1);
  return text.size() + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<ModelSpec> models = halyard::fuzz::make_models();
  if (size == 0) return 0;
  // The first byte selects the kind. The rest is in separate memory, so that a read beyond it is detected.
  const size_t which = data[0];
  const auto rest = std::make_unique<char[]>(size);
  std::copy(data + 1, data + size, rest.get());
  const std::string_view text(rest.get(), size - 1);
  if (which % 16 == 15) {
    for (const std::string_view method : {"GET", "POST", "HEAD"}) {
      const Route route = route_of(method, text);
      if (route.status != 200 && route.status != 400 && route.status != 404 && route.status != 405)
        halyard::fuzz::finding("a route with another status");
      if (route.status == 200 && (route.endpoint >= Endpoint::model_metadata) == route.model.empty())
        halyard::fuzz::finding("a route without its model");
    }
    return 0;
  }
  check_request(text, models[which % models.size()]);
  return 0;
}
