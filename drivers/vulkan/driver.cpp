// The driver's entry point: the classes behind the table of functions, the note and negotiation.
#include "halyard/driver.hpp"

#include "command_list.h"
#include "device.h"
#include "executable.h"
#include "timeline.h"
#include "work.h"

namespace halyard::vulkan {

namespace {

struct VulkanDriver : kit::OwnClasses<kit::TaskList> {
  static Result<std::unique_ptr<Instance>> create(const Services& services) {
    auto instance = std::make_unique<Instance>(services);
    instance->vulkan = HALYARD_TRY(VulkanInstance::create(services, false));
    return instance;
  }
};

}  // namespace

}  // namespace halyard::vulkan

HALYARD_KIT_DRIVER_OF(halyard::vulkan::VulkanDriver, "vulkan", HALYARD_VERSION, "vulkan",
                      {"vulkan", "Vulkan 1.2 and newer, through the Vulkan loader"})
