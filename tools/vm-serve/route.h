// What a request asks for: its method and path, as the protocol names them.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools::serve {

enum class Endpoint {
  page,             // GET /
  metrics,          // GET /metrics
  server_metadata,  // GET /v2
  live,             // GET /v2/health/live
  ready,            // GET /v2/health/ready
  models,           // GET /v2/models
  model_metadata,   // GET /v2/models/M[/versions/V]
  model_ready,      // GET /v2/models/M[/versions/V]/ready
  infer,            // POST /v2/models/M[/versions/V]/infer
};

struct Route {
  // 200, and the rest is valid; 400: the path is malformed; 404: no such path; 405: `allow` has the methods.
  unsigned status = 200;
  Endpoint endpoint = Endpoint::page;
  std::string model;      // decoded
  std::string version;    // "": whichever the server chooses
  std::string authority;  // of an absolute URI, which counts instead of Host; else ""
  std::string_view allow;
  bool is_head = false;  // the answer has no body
};

// `target` as it stands in the request line: a path, maybe with a query, which is ignored if it is well
// formed, or an absolute URI of http or https. One slash at the end is ignored.
Route route_of(std::string_view method, std::string_view target);

// For a model's name, a version, or the name of a folder of one: 1 to 128 letters, digits, '_', '-' and '.',
// which does not come first.
bool is_name(std::string_view text);

}  // namespace halyard::tools::serve
