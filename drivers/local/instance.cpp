// Lists the devices.
#include "instance.h"

namespace halyard::local {

std::vector<halyard_device_info_t> Instance::devices() const {
  std::vector<halyard_device_info_t> infos;
  for (const DeviceKind& kind : kDeviceKinds) {
    halyard_device_info_t& info = infos.emplace_back();
    info.kind = kind.name;
    info.path = "";
    info.name = kind.description;
  }
  return infos;
}

}  // namespace halyard::local
