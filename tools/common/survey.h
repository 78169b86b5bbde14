// How drivers were looked for, which of them work, their devices: what listings show. Code of a driver runs
// here only after it has run in a process of its own without harm.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/drivers.h"

namespace halyard::tools {

struct DriverInfo {
  size_t entry = 0;  // of the search: the library it is in
  std::string name;  // the kind of its devices
  std::string description;
  size_t device_count = 0;
  std::optional<Failure> failure;  // why its devices could not be listed
};

struct DeviceInfo {
  std::string uri;
  std::string name;                // for people; "" where it is not known
  std::optional<Failure> failure;  // why it could not be opened
  Handle<halyard_device_t> device;
  halyard_device_description_t description = {};  // its texts live as long as the device
  std::optional<halyard_memory_use_t> memory;
};

struct Survey {
  Handle<halyard_instance_t> instance;
  DriverSearch search;
  std::vector<std::optional<Failure>> failures;  // for each entry of the search: of its probe
  std::vector<DriverInfo> drivers;               // sorted by name
  std::vector<DeviceInfo> devices;               // in the order of the drivers

  size_t refused() const;  // files
};

// Where drivers are looked for; the files that fit are tried, each within the limit.
Result<Survey> survey_drivers(Handle<halyard_instance_t> instance, std::chrono::nanoseconds limit);
// The same, and all drivers and devices.
enum class Depth { listed, opened };  // of the devices
Result<Survey> survey_all(Handle<halyard_instance_t> instance, std::chrono::nanoseconds limit, Depth depth);
// The devices of one driver, listed, after trying it. NOT_FOUND: no such driver; else why it is refused.
Result<std::vector<DeviceInfo>> survey_devices(halyard_instance_t instance, const std::string& driver,
                                               std::chrono::nanoseconds limit);
// One device, by its URI. Fails with why there is none, after trying the driver that would serve it.
Result<DeviceInfo> survey_device(halyard_instance_t instance, const std::string& uri,
                                 std::chrono::nanoseconds limit);

// How one device uses memory that another one allocates, by their properties alone.
struct Sharing {
  const DeviceInfo* user = nullptr;
  const DeviceInfo* owner = nullptr;
  uint32_t how = HALYARD_SHARING_NONE;
  uint64_t alignment = 0;  // bytes, of what is imported; else 0
};
// Of every two devices that could be opened, both ways.
std::vector<Sharing> sharing(const std::vector<DeviceInfo>& devices);

}  // namespace halyard::tools
