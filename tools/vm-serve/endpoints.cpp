// One function for each endpoint.
#include "endpoints.h"

#include <algorithm>

#include "documents.h"
#include "page.h"
#include "process_metrics.h"

namespace halyard::tools::serve {

namespace {

// For answers that change with every request.
constexpr std::string_view kNoStore = "Cache-Control: no-store\r\n";

Response metrics_of(Server& server) {
  std::vector<Metrics::DeviceMemory> devices;
  for (const auto& device : server.repository.devices()->list()) {
    if (const auto use = device.memory()) devices.push_back({device.uri(), use->host_live, use->device_live});
  }
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .headers = std::string(kNoStore),
          .body = server.metrics.text(devices) + build_metrics(halyard_version()) + process_metrics()};
}

Response models_of(Server& server) {
  std::vector<std::string> names;
  for (const auto& [name, versions] : *server.repository.models())
    if (std::ranges::any_of(versions, [](const auto& version) { return !version.second.is_unloaded; }))
      names.push_back(name);
  return {.body = models_document(names)};
}

Response metadata_of(Server& server, const Model& model) {
  return {.body = model_document(model.spec(), loaded_versions(server, model.spec().name))};
}

// Of the model and version of the route; of all if the route names none.
Response statistics_of(Server& server, const Route& route) {
  const auto statistics = model_statistics(server, route.model, route.version);
  if (!statistics) return error_response(status_of_request(statistics.error().code), statistics.error().text);
  std::string text;
  for (const auto& [name, version, sums] : *statistics)
    text += (text.empty() ? "" : ",") + statistics_document(name, version, sums);
  return {.headers = std::string(kNoStore), .body = R"({"model_stats":[)" + text + "]}\n"};
}

}  // namespace

bool is_ready(Server& server) {
  return !server.is_draining() && is_ready(server.readiness, server.repository);
}

Result<bool> is_ready(Server& server, const std::string& model, const std::string& version) {
  const auto found = server.repository.find(model, version);
  if (!found && found.error().code == HALYARD_NOT_FOUND) return std::unexpected(found.error());
  return found && (*found)->is_ready() && !server.is_draining();
}

ModelConfig model_config(Server& server, const Model& model) {
  const ScheduleLimits& limits = server.scheduler.limits();
  return {.file = model.source().file,
          .max_batch = model.has_batches() ? model.source().batch : 0,
          .contexts = limits.contexts,
          .batch_delay = limits.batch_delay};
}

Result<std::vector<VersionStatistics>> model_statistics(Server& server, const std::string& model,
                                                        const std::string& version) {
  std::vector<VersionStatistics> found;
  const auto models = server.repository.models();
  for (const auto& [name, versions] : *models) {
    if (!model.empty() && name != model) continue;
    for (const auto& [number, entry] : versions)
      if (entry.model && (version.empty() || number == version))
        found.push_back({name, number, entry.model->metrics().statistics.get()});
  }
  // The reason why a model or a version is not there.
  if (found.empty() && !model.empty())
    if (const auto missing = server.repository.find(model, version); !missing)
      return std::unexpected(missing.error());
  return found;
}

std::vector<std::string> loaded_versions(Server& server, const std::string& model) {
  std::vector<std::string> versions;
  const auto models = server.repository.models();
  if (const auto found = models->find(model); found != models->end())
    for (const auto& [version, entry] : found->second)
      if (entry.model) versions.push_back(version);
  return versions;
}

Response index_answer(const Server& server, const ControlRequest& request) {
  std::string text;
  for (const Repository::State& state : server.repository.index()) {
    if (request.only_ready && !state.is_ready) continue;
    text += fmt::format(R"({}{{"name":{},"version":{},"state":"{}","reason":{}}})", text.empty() ? "" : ",",
                        json_string(state.name), json_string(state.version),
                        state.is_ready ? "READY" : "UNAVAILABLE", json_string(without_folders(state.reason)));
  }
  return {.body = "[" + text + "]\n"};
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
    case Endpoint::statistics:
      return statistics_of(server, route);
    case Endpoint::model_config:
    case Endpoint::model_page:
    case Endpoint::model_metadata: {
      const auto model = server.repository.find(route.model, route.version);
      if (!model) return error_response(status_of_request(model.error().code), model.error().text);
      if (route.endpoint == Endpoint::model_metadata) return metadata_of(server, **model);
      if (route.endpoint == Endpoint::model_page) return server.pages.page(*model);
      return {.body = config_document((*model)->spec(), model_config(server, **model))};
    }
    case Endpoint::model_ready: {
      const auto is_model_ready = is_ready(server, route.model, route.version);
      if (!is_model_ready) return error_response(404, is_model_ready.error().text);
      return {.status = *is_model_ready ? 200u : 503u,
              .body = model_ready_document(route.model, *is_model_ready)};
    }
    case Endpoint::infer:
    case Endpoint::repository_index:
    case Endpoint::repository_load:
    case Endpoint::repository_unload:
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
