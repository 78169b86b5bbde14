// Exports and imports semaphores, and signals exported semaphores.
#include "semaphore_fd.h"

#include "device.h"

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
  HALYARD_KIT_TRY(
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
  HALYARD_KIT_TRY(check_descriptors(device));
  const VkExportSemaphoreCreateInfo exportable = {.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
                                                  .handleTypes = kDescriptor};
  return SharedSemaphore(device, HALYARD_KIT_TRY(create_timeline(device, initial, &exportable)));
}

Result<SharedSemaphore> SharedSemaphore::create_empty(Device& device) {
  HALYARD_KIT_TRY(check_descriptors(device));
  return SharedSemaphore(device, HALYARD_KIT_TRY(create_timeline(device, 0, nullptr)));
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
  HALYARD_KIT_TRY(check(device_.vk().GetSemaphoreFdKHR(device_.handle(), &info, &fd), "vkGetSemaphoreFdKHR"));
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

}  // namespace halyard::vulkan
