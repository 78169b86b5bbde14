// The driver `remote`: devices of vm-device on this machine or on others.
#include "device.h"
#include "driver_of.h"
#include "failures.h"
#include "place.h"
#include "runtime.h"

namespace halyard::remote {

namespace {

class Instance {
 public:
  explicit Instance(const kit::Services& services) : services_(services) {}
  const kit::Services& services() const { return services_; }
  // Servers are named by URIs alone.
  std::vector<halyard_device_info_t> devices() const { return {}; }
  kit::Result<std::unique_ptr<Device>> open(const halyard_device_open_args_t& args) {
    Place place = HALYARD_KIT_TRY(place_of(args));
    return std::make_unique<Device>(HALYARD_KIT_TRY(Connection::open(services_, runtime_, std::move(place))));
  }

 private:
  const kit::Services& services_;
  Runtime runtime_;
};

}  // namespace

}  // namespace halyard::remote

HALYARD_KIT_DRIVER_OF(halyard::remote::DriverOf<halyard::remote::Instance>, "remote", HALYARD_VERSION,
                      "remote,remote+unix",
                      {"remote", "Uses a device of vm-device on another machine, over TLS"},
                      {"remote+unix", "Uses a device of vm-device on this machine, over a Unix socket"})
