// Parses small JSON objects.
#include "control_request.h"

#include <optional>

#include "common/json.h"

namespace halyard::tools::serve {

namespace {

constexpr int kMaxDepth = 64;  // nested objects and arrays

// No value if the text is not JSON, or is nested more deeply.
std::optional<Json> parse(std::string_view text) {
  bool is_too_deep = false;
  Json value = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, const Json&) {
        is_too_deep |= depth > kMaxDepth;
        return !is_too_deep;  // nothing more is stored
      },
      false);
  if (is_too_deep || value.is_discarded()) return std::nullopt;
  return value;
}

Result<> check_parameters(const Json& object) {
  const auto parameters = object.find("parameters");
  if (parameters == object.end()) return {};
  if (!parameters->is_object())
    return fail(HALYARD_INVALID_ARGUMENT, "\"parameters\" is not an object; expected one, or none");
  for (const auto& [name, value] : parameters->items()) TOOL_TRY(check_load_parameter(name));
  return {};
}

}  // namespace

Result<> check_load_parameter(std::string_view name) {
  if (name != "config" && !name.starts_with("file:")) return {};
  return fail(HALYARD_INVALID_ARGUMENT,
              "the parameter '{}' is not supported, because models are loaded only from the files of the "
              "server; expected no such parameter, and settings in model.json beside the module",
              name);
}

Result<ControlRequest> parse_control_request(Endpoint endpoint, std::string_view body) {
  ControlRequest request;
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return request;
  const std::optional<Json> object = parse(body);
  if (!object || !object->is_object())
    return fail(HALYARD_INVALID_ARGUMENT,
                "the body is not a JSON object; expected one of at most {} nested levels, or an empty body",
                kMaxDepth);
  if (endpoint == Endpoint::repository_load) TOOL_TRY(check_parameters(*object));
  if (endpoint != Endpoint::repository_index) return request;
  if (const auto ready = object->find("ready"); ready != object->end()) {
    if (!ready->is_boolean())
      return fail(HALYARD_INVALID_ARGUMENT, "the type of \"ready\" is {}; expected true or false",
                  ready->type_name());
    request.only_ready = *ready;
  }
  return request;
}

}  // namespace halyard::tools::serve
