// Passing semaphores between drivers as file descriptors.
#include "hal/queue/semaphore_fd.h"

#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/device/pooled.h"
#include "hal/queue/bridge.h"

namespace halyard::hal {

namespace {

// Closed in the destructor, unless the importer has taken ownership.
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

// A timeline that a program keeps has one import for each device, however often it is waited for.
struct Semaphore::Imports {
  std::mutex mutex;
  std::vector<Ref<Semaphore>> list;
};

void Semaphore::drop_imports() { delete imports_.load(std::memory_order_acquire); }

Result<Ref<Semaphore>> Semaphore::imported_by(Device& device) {
  Imports* imports = imports_.load(std::memory_order_acquire);
  if (!imports) {
    auto made = std::make_unique<Imports>();
    if (imports_.compare_exchange_strong(imports, made.get(), std::memory_order_acq_rel))
      imports = made.release();
  }
  const std::lock_guard lock(imports->mutex);
  for (const Ref<Semaphore>& known : imports->list)
    if (&known->device() == &device) return known;
  imports->list.reserve(imports->list.size() + 1);
  return imports->list.emplace_back(HALYARD_TRY(import(device)));
}

Result<Ref<Semaphore>> Semaphore::import(Device& home) const {
  Ref<Semaphore> semaphore = make_pooled<Semaphore>(home, Ref<Device>::share(&home));
  Descriptor descriptor;
  if (Status status = Status::adopt(device_->table().semaphore_export(handle_, &descriptor.fd)))
    return std::unexpected(std::move(status));
  if (descriptor.fd < 0)
    return halyard::fail(Code::INTERNAL,
                         "the driver of device '{}' exported a semaphore but gave descriptor {}",
                         device_->uri(), descriptor.fd);
  halyard_driver_semaphore_t handle = nullptr;
  if (Status status = Status::adopt(home.table().semaphore_import(home.handle(), descriptor.fd, &handle)))
    return std::unexpected(std::move(status));
  descriptor.fd = -1;
  HALYARD_TRY(home.check_given(handle, "semaphore_import"));
  semaphore->handle_ = handle;
  return semaphore;
}

Result<Timepoint> own_timepoint(Device& device, const Timepoint& timepoint) {
  Semaphore& other = *timepoint.semaphore;
  const halyard_driver_table_t& table = other.device().table();
  if (can_pass(other.device(), device) && table.semaphore_underway &&
      table.semaphore_underway(other.handle(), timepoint.value) != 0) {
    // A reached timepoint needs no descriptor. If no descriptor is available, because the process has too
    // many, a bridge is used.
    const Result<uint64_t> value = other.query();
    if (value && *value < timepoint.value) {
      if (auto imported = other.imported_by(device)) {
        HALYARD_TRY(pass_failure(timepoint, *imported));
        return Timepoint{*std::move(imported), timepoint.value};
      }
    }
  }
  return Timepoint{HALYARD_TRY(make_bridge(device, timepoint)), 1};
}

}  // namespace halyard::hal
