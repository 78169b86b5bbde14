// The driver `remote-pair`: the driver `remote` and a server of devices in one process, connected by a
// socketpair. "remote-pair://DEVICE" is that device of the drivers in $HALYARD_PAIR_DRIVERS (a list with
// ':').
#include <sys/socket.h>

#include <cstdlib>
#include <sstream>
#include <thread>

#include "device.h"
#include "driver_of.h"
#include "failures.h"
#include "runtime.h"
#include "server/server.h"

namespace halyard::remote {

namespace {

// A server that runs as long as this object exists.
class PairServer {
 public:
  static Result<std::unique_ptr<PairServer>> create(const std::string& device) {
    device_server::ServerOptions options;
    options.devices = {device};
    const char* const files = std::getenv("HALYARD_PAIR_DRIVERS");
    std::istringstream list(files ? files : "");
    for (std::string file; std::getline(list, file, ':');) options.driver_files.push_back(file);
    std::unique_ptr<device_server::Server> server =
        REMOTE_TRY(device_server::Server::create(std::move(options)));
    return std::make_unique<PairServer>(std::move(server));
  }
  explicit PairServer(std::unique_ptr<device_server::Server> server)
      : server_(std::move(server)), thread_([this] { server_->run(3); }) {}
  ~PairServer() {
    server_->stop();
    thread_.join();
  }
  void take(Descriptor socket) { server_->take(std::move(socket), nullptr); }

 private:
  std::unique_ptr<device_server::Server> server_;
  std::thread thread_;
};

class PairInstance {
 public:
  explicit PairInstance(const kit::Services& services) : services_(services) {}
  const kit::Services& services() const { return services_; }
  std::vector<halyard_device_info_t> devices() const { return {}; }
  kit::Result<std::unique_ptr<Device>> open(const halyard_device_open_args_t& args) {
    kit::Options options(args);
    HALYARD_KIT_TRY(options.finish());
    Place place;
    place.transport = Transport::unix_socket;
    place.path = "a server in this process";
    place.patience = std::chrono::seconds(30);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      return kit::Failure{HALYARD_RESOURCE_EXHAUSTED, "no socketpair"};
    Descriptor here(ends[0]), there(ends[1]);
    servers_.push_back(HALYARD_KIT_TRY(to_kit(PairServer::create(std::string(kit::view(args.path))))));
    servers_.back()->take(std::move(there));
    return std::make_unique<Device>(
        HALYARD_KIT_TRY(Connection::over(services_, runtime_, std::move(place), std::move(here))));
  }

 private:
  const kit::Services& services_;
  std::vector<std::unique_ptr<PairServer>> servers_;
  Runtime runtime_;
};

}  // namespace

}  // namespace halyard::remote

HALYARD_KIT_DRIVER_OF(halyard::remote::DriverOf<halyard::remote::PairInstance>, "remote-pair", "1.0",
                      "remote-pair", {"remote-pair", "A device of a server in this process"})
