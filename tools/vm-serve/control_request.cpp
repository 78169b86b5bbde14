// Parses small JSON objects.
#include "control_request.h"

#include "common/json.h"

namespace halyard::tools::serve {

namespace {

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
  const Json object = Json::parse(body, nullptr, false);
  if (!object.is_object())
    return fail(HALYARD_INVALID_ARGUMENT, "the body is not a JSON object; expected one, or an empty body");
  if (endpoint == Endpoint::repository_load) TOOL_TRY(check_parameters(object));
  if (endpoint != Endpoint::repository_index) return request;
  if (const auto ready = object.find("ready"); ready != object.end()) {
    if (!ready->is_boolean())
      return fail(HALYARD_INVALID_ARGUMENT, "\"ready\" is {}; expected true or false",
                  ready->dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 64));
    request.only_ready = *ready;
  }
  return request;
}

}  // namespace halyard::tools::serve
