// The target of a request: its method and path, as the protocol defines them.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools::serve {

enum class Endpoint {
  page,               // GET /
  metrics,            // GET /metrics
  server_metadata,    // GET /v2
  live,               // GET /v2/health/live
  ready,              // GET /v2/health/ready
  models,             // GET /v2/models
  model_metadata,     // GET /v2/models/M[/versions/V]
  model_ready,        // GET /v2/models/M[/versions/V]/ready
  model_config,       // GET /v2/models/M[/versions/V]/config
  model_page,         // GET /v2/models/M[/versions/V]/page
  statistics,         // GET /v2/models[/M[/versions/V]]/stats
  infer,              // POST /v2/models/M[/versions/V]/infer
  repository_index,   // POST /v2/repository/index
  repository_load,    // POST /v2/repository/models/M/load
  repository_unload,  // POST /v2/repository/models/M/unload
};

struct Route {
  // 200: the other members are valid. 400: the path is malformed. 404: no such path. 405: `allow` lists the
  // methods.
  unsigned status = 200;
  Endpoint endpoint = Endpoint::page;
  std::string model;      // decoded
  std::string version;    // "": the server chooses
  std::string authority;  // of an absolute URI, which replaces Host; else ""
  std::string_view allow;
  bool is_head = false;  // with any status: the response has no body
};

// `target` is taken from the request line: a path, with an optional query, which is ignored if well formed,
// or an absolute URI of http or https. One slash at the end is ignored.
Route route_of(std::string_view method, std::string_view target);

// Whether the text is valid as the name of a model, a version, or the folder of one: 1 to 128 letters,
// digits, '_', '-' and '.', not starting with '.'.
bool is_name(std::string_view text);

}  // namespace halyard::tools::serve
