// Lists the devices.
#include "instance.h"

namespace halyard::vulkan {

std::vector<halyard_device_info_t> Instance::devices() const {
  std::vector<halyard_device_info_t> infos;
  for (const PhysicalDevice& device : vulkan->devices()) {
    halyard_device_info_t& info = infos.emplace_back();
    info.kind = "vulkan";
    info.path = device.path.c_str();
    info.name = device.properties.deviceName;
  }
  return infos;
}

}  // namespace halyard::vulkan
