// A server of one process, or of many.
#include "server/server.h"
#include "server/serving.h"
#include "server/supervisor.h"

namespace halyard::device_server {

remote::Result<std::unique_ptr<Server>> Server::create(ServerOptions options) {
  if (options.isolates) return create_supervisor(std::move(options));
  Role role;
  role.clients = std::make_shared<AllClients>(options.limits, AllClients::Serving::in_this_process);
  return ServingProcess::create(options, std::move(role), true);
}

}  // namespace halyard::device_server
