// One function for each endpoint.
#include "endpoints.h"

#include "page.h"

namespace halyard::tools::serve {

namespace {

Response metrics_of(Server& server) {
  std::vector<Metrics::DeviceMemory> devices;
  for (const auto& device : server.repository.devices()->list()) {
    if (const auto use = device.memory()) devices.push_back({device.uri(), use->host_live, use->device_live});
  }
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = server.metrics.text(devices)};
}

Response models_of(Server& server) {
  std::vector<std::string> names;
  for (const auto& [name, versions] : *server.repository.models()) names.push_back(name);
  return {.body = models_document(names)};
}

Response metadata_of(Server& server, const Model& model) {
  return {.body = model_document(model.spec(), loaded_versions(server, model.spec().name))};
}

}  // namespace

bool is_ready(Server& server) { return !server.is_draining() && server.repository.is_ready(); }

Result<bool> is_ready(Server& server, const std::string& model, const std::string& version) {
  const auto found = server.repository.find(model, version);
  if (!found && found.error().code == HALYARD_NOT_FOUND) return std::unexpected(found.error());
  return found && (*found)->is_ready() && !server.is_draining();
}

std::vector<std::string> loaded_versions(Server& server, const std::string& model) {
  std::vector<std::string> versions;
  const auto models = server.repository.models();
  if (const auto found = models->find(model); found != models->end())
    for (const auto& [version, entry] : found->second)
      if (entry.model) versions.push_back(version);
  return versions;
}

Response answer(Server& server, const Route& route) {
  switch (route.endpoint) {
    case Endpoint::page:
      return {.content_type = "text/html; charset=utf-8",
              .headers = std::string(kPageHeaders),
              .body = std::string(kPage)};
    case Endpoint::metrics:
      return metrics_of(server);
    case Endpoint::server_metadata:
      return {.body = server_document(halyard_version())};
    case Endpoint::live:
      return {.body = live_document()};
    case Endpoint::ready: {
      const bool is_all_ready = is_ready(server);
      return {.status = is_all_ready ? 200u : 503u, .body = ready_document(is_all_ready)};
    }
    case Endpoint::models:
      return models_of(server);
    case Endpoint::model_metadata: {
      const auto model = server.repository.find(route.model, route.version);
      if (!model) return error_response(status_of_request(model.error().code), model.error().text);
      return metadata_of(server, **model);
    }
    case Endpoint::model_ready: {
      const auto is_model_ready = is_ready(server, route.model, route.version);
      if (!is_model_ready) return error_response(404, is_model_ready.error().text);
      return {.status = *is_model_ready ? 200u : 503u,
              .body = model_ready_document(route.model, *is_model_ready)};
    }
    case Endpoint::infer:
      break;
  }
  return error_response(500, "unreachable");
}

Response refusal(const Route& route) {
  switch (route.status) {
    case 404:
      return error_response(404,
                            "no such path; GET /v2 is the beginning of the protocol, GET / shows the models");
    case 405: {
      Response response = error_response(405, fmt::format("this path accepts {}", route.allow));
      response.headers = fmt::format("Allow: {}\r\n", route.allow);
      return response;
    }
    default:
      return error_response(400, "the path is malformed");
  }
}

}  // namespace halyard::tools::serve
