// The driver's entry point: the classes behind the table of functions, the note and negotiation.
#include "halyard/driver.hpp"

#include <memory>

#include "commands.h"
#include "device.h"
#include "executable.h"
#include "queue.h"
#include "timeline.h"

namespace halyard::local {

namespace {

struct LocalDriver : kit::OwnClasses<local::TaskList> {
  static Result<std::unique_ptr<Instance>> create(const Services& services) {
    return std::make_unique<Instance>(services);
  }
};

constexpr halyard_driver_kind_t kind(const DeviceKind& kind) { return {kind.name, kind.description}; }

}  // namespace

}  // namespace halyard::local

HALYARD_KIT_DRIVER_OF(halyard::local::LocalDriver, "local", HALYARD_VERSION, "local-sync,local-task",
                      halyard::local::kind(halyard::local::kDeviceKinds[0]),
                      halyard::local::kind(halyard::local::kDeviceKinds[1]))
