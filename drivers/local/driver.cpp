// The driver's entry point: the classes behind the table of functions, the note and negotiation.
#include "halyard/driver.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "command_list.h"
#include "device.h"
#include "executable.h"
#include "executable_kinds.h"
#include "timeline.h"
#include "work.h"

namespace halyard::local {

namespace {

// A device with the functions that the table of functions calls in addition; see driver.h.
struct DriverDevice final : Device {
  using Device::Device;
  uint32_t grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const {
    return grade_executable(*this, format, data, reason);
  }
  Result<std::unique_ptr<halyard_driver_executable>> load(const halyard_executable_args_t& args) const {
    return load_executable(*this, args);
  }
  Result<std::unique_ptr<halyard_driver_command_list>> create_list(
      const halyard_command_list_args_t& args) const {
    return CommandList::create(args);
  }
  Result<> submit(const halyard_submission_t& submission, TaskList& ready) {
    return local::submit(*this, submission, ready);
  }
  void help(kit::Timepoints points, bool any) { run_pending(*this, points, any); }
};

struct DriverInstance final : Instance {
  using Instance::Instance;
  Result<std::unique_ptr<DriverDevice>> open(const halyard_device_open_args_t& args) {
    auto device = std::make_unique<DriverDevice>(*this, HALYARD_TRY(DeviceOptions::parse(args)));
    HALYARD_TRY(device->start());
    return device;
  }
};

struct LocalDriver : kit::OwnClasses<local::TaskList> {
  using Instance = DriverInstance;
  using Device = DriverDevice;
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
