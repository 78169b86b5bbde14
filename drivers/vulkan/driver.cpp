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
#include "timeline.h"
#include "work.h"

namespace halyard::vulkan {

// Here, because the pool of work nodes needs Work.
Instance::Instance(const Services& host) : trace_span(kit::trace_function(host)), host_(host) {}
Instance::~Instance() = default;

namespace {

// A device with the functions that the table of functions calls in addition; see driver.h.
struct DriverDevice final : halyard_driver_device {
  using halyard_driver_device::halyard_driver_device;
  Result<std::unique_ptr<halyard_driver_semaphore>> create_semaphore(uint64_t initial) {
    return std::make_unique<halyard_driver_semaphore>(*this, services(), initial);
  }
  Result<std::unique_ptr<halyard_driver_semaphore>> import_semaphore(int32_t fd) {
    auto semaphore = std::make_unique<halyard_driver_semaphore>(
        services(), HALYARD_KIT_TRY(SharedSemaphore::create_empty(*this)));
    HALYARD_KIT_TRY(semaphore->take(fd));  // last, because it cannot be undone
    return semaphore;
  }
  uint32_t grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const {
    return grade_executable(*this, format, data, reason);
  }
  Result<std::unique_ptr<halyard_driver_executable>> load(const halyard_executable_args_t& args) {
    return Executable::create(*this, args);
  }
  Result<std::unique_ptr<halyard_driver_command_list>> create_list(const halyard_command_list_args_t& args) {
    return CommandList::create(*this, args);
  }
  Result<> submit(const halyard_submission_t& submission, TaskList& ready) {
    HALYARD_KIT_TRY(vulkan::submit(*this, submission, ready));
    run_ready(ready);
    return {};
  }
};

struct DriverInstance final : Instance {
  using Instance::Instance;
  Result<std::unique_ptr<DriverDevice>> open(const halyard_device_open_args_t& args) {
    auto device = std::make_unique<DriverDevice>(*this, HALYARD_KIT_TRY(DeviceOptions::parse(args)));
    HALYARD_KIT_TRY(device->start());
    return device;
  }
};

struct VulkanDriver : kit::OwnClasses<kit::TaskList> {
  using Instance = DriverInstance;
  using Device = DriverDevice;
  static Result<std::unique_ptr<Instance>> create(const Services& services) {
    auto instance = std::make_unique<Instance>(services);
    instance->vulkan = HALYARD_KIT_TRY(VulkanInstance::create(services, false));
    return instance;
  }
};

}  // namespace

}  // namespace halyard::vulkan

HALYARD_KIT_DRIVER_OF(halyard::vulkan::VulkanDriver, "vulkan", HALYARD_VERSION, "vulkan",
                      {"vulkan", "Vulkan 1.2 and newer, through the Vulkan loader"})
