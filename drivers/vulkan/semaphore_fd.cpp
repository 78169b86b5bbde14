// Exports and imports semaphores, and signals exported semaphores.
#include "semaphore_fd.h"

#include "device.h"
#include "timeline.h"

namespace halyard::vulkan {

namespace {

constexpr VkExternalSemaphoreHandleTypeFlagBits kDescriptor = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;

Result<VkSemaphore> create_timeline(const Device& device, uint64_t initial, const void* next) {
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .pNext = next,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                          .initialValue = initial};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  VkSemaphore handle = VK_NULL_HANDLE;
  HALYARD_TRY(
      check(device.vk().CreateSemaphore(device.handle(), &info, nullptr, &handle), "vkCreateSemaphore"));
  return handle;
}

Result<> check_descriptors(const Device& device) {
  if (device.features().semaphore_descriptors && device.vk().GetSemaphoreFdKHR &&
      device.vk().ImportSemaphoreFdKHR)
    return {};
  return fail(HALYARD_UNIMPLEMENTED,
              "this device has no file descriptors for timeline semaphores ({}, OPAQUE_FD)",
              VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
}

}  // namespace

Result<SharedSemaphore> SharedSemaphore::create(Device& device, uint64_t initial) {
  HALYARD_TRY(check_descriptors(device));
  const VkExportSemaphoreCreateInfo exportable = {.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
                                                  .handleTypes = kDescriptor};
  return SharedSemaphore(device, HALYARD_TRY(create_timeline(device, initial, &exportable)));
}

Result<SharedSemaphore> SharedSemaphore::create_empty(Device& device) {
  HALYARD_TRY(check_descriptors(device));
  return SharedSemaphore(device, HALYARD_TRY(create_timeline(device, 0, nullptr)));
}

Result<> SharedSemaphore::take(int32_t fd) {
  const VkImportSemaphoreFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
                                           .semaphore = handle_,
                                           .handleType = kDescriptor,
                                           .fd = fd};
  const VkResult result = device_.vk().ImportSemaphoreFdKHR(device_.handle(), &info);
  if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
    return fail(HALYARD_INVALID_ARGUMENT,
                "file descriptor {} is no timeline semaphore that this device can import; expected one that "
                "was exported by the same device and driver",
                fd);
  return check(result, "vkImportSemaphoreFdKHR");
}

SharedSemaphore::~SharedSemaphore() {
  if (handle_ && queue_)
    queue_->destroy_behind(handle_, number_);
  else if (handle_)
    device_.vk().DestroySemaphore(device_.handle(), handle_, nullptr);
}

Result<int32_t> SharedSemaphore::descriptor() const {
  const VkSemaphoreGetFdInfoKHR info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR, .semaphore = handle_, .handleType = kDescriptor};
  int fd = -1;
  HALYARD_TRY(check(device_.vk().GetSemaphoreFdKHR(device_.handle(), &info, &fd), "vkGetSemaphoreFdKHR"));
  return fd;
}

uint64_t SharedSemaphore::value() const {
  uint64_t value = 0;
  if (device_.vk().GetSemaphoreCounterValue(device_.handle(), handle_, &value) != VK_SUCCESS ||
      value == UINT64_MAX)  // some implementations return this for a lost device
    return 0;
  return value;
}

void SharedSemaphore::signal(uint64_t value) {
  if (queue_ && !queue_->has_done(number_)) {
    (void)signal_behind(*queue_, value);
    return;
  }
  const VkSemaphoreSignalInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = handle_, .value = value};
  (void)device_.vk().SignalSemaphore(device_.handle(), &info);
}

bool SharedSemaphore::signal_behind(Queue& queue, uint64_t value) {
  if (queue_ && queue_ != &queue && !queue_->has_done(number_)) return false;
  const uint64_t number = queue.signal(handle_, value);
  if (number == 0) return false;
  queue_ = &queue;
  number_ = number;
  return true;
}

// ---- Of timelines

Result<int32_t> Semaphore::export_fd() {
  if (import_) return vulkan::fail(HALYARD_UNIMPLEMENTED, "an imported semaphore cannot be exported again");
  const std::lock_guard exports_lock(exports_mutex_);
  uint64_t initial = 0;
  {
    const std::lock_guard lock(mutex_);
    is_exported_ = true;
    initial = value_;
    for (const Promise& promise : promises_) promise.point.queue->want(promise.point.number);
  }
  SharedSemaphore semaphore = HALYARD_TRY(SharedSemaphore::create(device_, initial));
  exports_.reserve(exports_.size() + 1);
  const int32_t descriptor = HALYARD_TRY(semaphore.descriptor());
  exports_.push_back({std::move(semaphore), initial});
  signal_current();
  signal_promised();
  return descriptor;
}

bool Semaphore::underway(uint64_t value) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return false;
    if (on_device() >= value) return true;
    if (!promise_for(value, nullptr)) return false;
    if (!is_exported_) return true;
  }
  // Called before a wait for the export.
  const std::lock_guard exports_lock(exports_mutex_);
  signal_promised();
  return true;
}

// A queue can signal the value that its work will reach if no other value must come before it and no other
// queue has a signal pending. Otherwise the host signals when the value is reached.
void Semaphore::signal_promised() {
  const auto promised_as = [&](uint64_t value) {
    const std::lock_guard lock(mutex_);
    const Promise* found = failed_ ? nullptr : promise_for(value, &device_);
    return found && found->value == value ? found->point : QueuePoint{};
  };
  for (Export& each : exports_) {
    for (QueuePoint point = promised_as(each.signalled + 1);
         point.queue && each.semaphore.signal_behind(*point.queue, each.signalled + 1);
         point = promised_as(each.signalled + 1))
      ++each.signalled;
  }
}

// A later check covers values between two checks.
void Semaphore::update_exports() {
  const std::lock_guard exports_lock(exports_mutex_);
  signal_current();
}

void Semaphore::signal_current() {
  const uint64_t value = this->value();
  for (Export& each : exports_) {
    if (value <= each.signalled) continue;
    each.semaphore.signal(value);
    each.signalled = value;
  }
}

void Semaphore::look() {
  TaskList ready;
  if (import_) keep(import_->value(), {}, ready);
  ready.run();
}

VkSemaphore Semaphore::await_on_device(uint64_t value) {
  const std::lock_guard lock(mutex_);
  if (failed_) return VK_NULL_HANDLE;
  awaited_ = std::max(awaited_, value);
  return import_->handle();
}

// Lets the device continue, because the value will never be reached. The waiters have been notified of the
// failure, so the results of the work that runs now are discarded.
void Semaphore::release_device() {
  if (import_ && awaited_ > import_->value()) import_->signal(awaited_);
}

}  // namespace halyard::vulkan
