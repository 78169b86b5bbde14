// The steps in order, each preceded by its progress report.
#include "hal/registry/driver_probe.h"

#include "hal/device/device.h"

namespace halyard::hal {

Result<> probe_driver(const std::string& path, const DriverProgress& progress) {
  Ref<DriverLibrary> library = HALYARD_TRY(DriverLibrary::open(path, {}, progress));
  progress("enumerate_devices");
  const auto devices = library->enumerate();
  if (devices) {
    for (const DriverLibrary::DeviceInfo& device : *devices) {
      progress("device_open");
      static_cast<void>(Device::open(library, device.kind, device.path, {}));
    }
  }
  progress("shutdown");
  library = nullptr;
  if (!devices) return std::unexpected(devices.error());
  return {};
}

}  // namespace halyard::hal
