// Semaphores that cross from driver to driver as file descriptors.
#include "hal/semaphore_fd.h"

#include <unistd.h>

#include <cstring>

#include "hal/bridge.h"
#include "hal/pooled.h"

namespace halyard::hal {

namespace {

// Closed unless the importer has taken it over.
struct Descriptor {
  int32_t fd = -1;
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

bool has_descriptors(const Device& device) {
  const halyard_device_properties_t& properties = device.properties();
  return (properties.capabilities & HALYARD_DEVICE_SEMAPHORE_EXPORT) &&
         properties.semaphore_fd_kind != HALYARD_SEMAPHORE_FD_NONE && device.table().semaphore_export &&
         device.table().semaphore_import;
}

}  // namespace

bool can_pass(const Device& owner, const Device& user) {
  if (!has_descriptors(owner) || !has_descriptors(user)) return false;
  const halyard_device_properties_t& a = owner.properties();
  const halyard_device_properties_t& b = user.properties();
  return a.semaphore_fd_kind == b.semaphore_fd_kind &&
         std::memcmp(a.semaphore_fd_group, b.semaphore_fd_group, sizeof a.semaphore_fd_group) == 0;
}

Result<Ref<Semaphore>> Semaphore::follow(Ref<Device> device, const Semaphore& other) {
  Device& home = *device;
  Ref<Semaphore> semaphore = make_pooled<Semaphore>(home, std::move(device));
  Descriptor descriptor;
  if (Status status = Status::adopt(other.device().table().semaphore_export(other.handle(), &descriptor.fd)))
    return std::unexpected(std::move(status));
  if (descriptor.fd < 0)
    return halyard::fail(Code::INTERNAL,
                         "the driver of device '{}' exported a semaphore but gave descriptor {}",
                         other.device().uri(), descriptor.fd);
  halyard_driver_semaphore_t handle = nullptr;
  if (Status status = Status::adopt(home.table().semaphore_import(home.handle(), descriptor.fd, &handle)))
    return std::unexpected(std::move(status));
  descriptor.fd = -1;
  HALYARD_TRY(home.check_given(handle, "semaphore_import"));
  semaphore->handle_ = handle;
  return semaphore;
}

Result<Timepoint> own_timepoint(Device& device, const Timepoint& timepoint) {
  const Semaphore& other = *timepoint.semaphore;
  const halyard_driver_table_t& table = other.device().table();
  if (can_pass(other.device(), device) && table.semaphore_underway &&
      table.semaphore_underway(other.handle(), timepoint.value) != 0) {
    // What is reached needs no descriptor. Where none can be had (the process has too many), a bridge does.
    const Result<uint64_t> value = other.query();
    if (value && *value < timepoint.value) {
      if (auto imported = Semaphore::follow(Ref<Device>::share(&device), other)) {
        HALYARD_TRY(pass_failure(timepoint, *imported));
        return Timepoint{*std::move(imported), timepoint.value};
      }
    }
  }
  return Timepoint{HALYARD_TRY(make_bridge(device, timepoint)), 1};
}

}  // namespace halyard::hal
