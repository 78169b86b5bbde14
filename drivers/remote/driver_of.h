// DriverOf: the classes of the driver for the kit's table; instances differ in how they open a device.
#pragma once

#include <memory>

#include "device.h"

namespace halyard::remote {

template <typename InstanceType>
struct DriverOf {
  using Instance = InstanceType;
  using Device = remote::Device;
  using Memory = remote::Memory;
  using Semaphore = remote::Semaphore;
  using Executable = remote::Executable;
  using CommandList = remote::CommandList;
  using TaskList = kit::TaskList;
  static kit::Result<std::unique_ptr<Instance>> create(const kit::Services& services) {
    return std::make_unique<Instance>(services);
  }
};

}  // namespace halyard::remote
