// A survey of drivers and devices, for listings: the search for drivers, the working drivers, their devices.
// A driver's code runs in this process only after it has run in a separate process without failure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/drivers.h"

namespace halyard::tools {

struct DriverInfo {
  size_t entry = 0;  // index of its library in the search log
  std::string name;  // the kind of its devices
  std::string description;
  size_t device_count = 0;
  std::optional<Failure> failure;  // why its devices could not be listed
};

struct DeviceInfo {
  std::string uri;
  std::string name;                // for display; "" if unknown
  std::optional<Failure> failure;  // why it could not be opened
  Device device;
  halyard_device_description_t description = {};  // the texts live as long as the device
  std::optional<halyard_memory_use_t> memory;
};

struct Survey {
  Instance instance;
  DriverSearch search;
  std::vector<std::optional<Failure>> failures;  // of the probes, one for each entry of the search
  std::vector<DriverInfo> drivers;               // sorted by name
  std::vector<DeviceInfo> devices;               // in the order of the drivers

  size_t refused() const;  // number of refused files
};

// Searches for drivers and tries each suitable file, within the time limit.
Result<Survey> survey_drivers(Instance instance, std::chrono::nanoseconds limit);
// Also lists all drivers and devices.
enum class Depth { listed, opened };  // of the devices
Result<Survey> survey_all(Instance instance, std::chrono::nanoseconds limit, Depth depth);
// Tries one driver and lists its devices. NOT_FOUND: no such driver. Other failures: the reason for refusing
// it.
Result<std::vector<DeviceInfo>> survey_devices(const Instance& instance, const std::string& driver,
                                               std::chrono::nanoseconds limit);
// Tries the driver that serves the URI and opens the device. The failure is the reason why there is no such
// device.
Result<DeviceInfo> survey_device(const Instance& instance, const std::string& uri,
                                 std::chrono::nanoseconds limit);

// How one device accesses memory that another device allocates, according to their properties.
struct Sharing {
  const DeviceInfo* user = nullptr;
  const DeviceInfo* owner = nullptr;
  uint32_t how = HALYARD_SHARING_NONE;
  uint64_t alignment = 0;  // of imported memory, in bytes; else 0
};
// For all pairs of opened devices, in both directions.
std::vector<Sharing> sharing(const std::vector<DeviceInfo>& devices);

}  // namespace halyard::tools
