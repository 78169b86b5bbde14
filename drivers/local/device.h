// Instance and Device: what every other part hangs from. Devices share nothing but the host's services.
#pragma once

#include <optional>
#include <string_view>

#include "device_memory.h"
#include "status.h"

namespace halyard::local {

struct Instance {
  const Services& services;
};

// What a user writes in a URI, and what it is.
struct DeviceKind {
  const char* name;
  const char* description;
};
inline constexpr DeviceKind kDeviceKinds[] = {
    {"local-sync", "CPU, work is done at once on the calling thread"},
};

struct Device {
  explicit Device(Instance& owner);

  Instance& instance;
  Heap heap;

  const Services& services() const { return instance.services; }
  void describe(halyard_device_properties_t& properties) const;
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;
};

// NOT_FOUND: a kind or path that is not there. INVALID_ARGUMENT: an option.
Result<> check_open(const halyard_device_open_args_t& args);

}  // namespace halyard::local

struct halyard_driver_instance final : halyard::local::Instance {};

struct halyard_driver_device final : halyard::local::Device {
  using Device::Device;
};
