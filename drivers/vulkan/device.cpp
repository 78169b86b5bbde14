// The properties, memory and loss of a device.
#include "device.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "halyard/driver/host_memory.hpp"

namespace halyard::vulkan {

halyard_device_properties_t Device::properties() const {
  halyard_device_properties_t properties = {};
  properties.capabilities = HALYARD_DEVICE_QUEUE_ALLOCA;
  if (heap_->unified()) properties.capabilities |= HALYARD_DEVICE_UNIFIED_MEMORY;
  if (heap_->all_coherent()) properties.capabilities |= HALYARD_DEVICE_HOST_COHERENT;
  properties.queue_count = static_cast<uint32_t>(queues_.size());
  properties.operations = kOperationBits;
  properties.memory_alignment = heap_->alignment();
  properties.maximum_allocation = heap_->maximum();
  // Not the page size that Vulkan requires: see Heap::import.
  properties.import_alignment = features_.import_host_memory ? heap_->binding_alignment() : 0;
  if (!features_.semaphore_descriptors) return properties;
  properties.capabilities |= HALYARD_DEVICE_SEMAPHORE_EXPORT;
  properties.semaphore_fd_kind = HALYARD_SEMAPHORE_FD_OPAQUE;
  std::memcpy(properties.semaphore_fd_group, features_.ids.deviceUUID, VK_UUID_SIZE);
  std::memcpy(properties.semaphore_fd_group + VK_UUID_SIZE, features_.ids.driverUUID, VK_UUID_SIZE);
  return properties;
}

std::optional<int64_t> Device::query(std::string_view category, std::string_view key) const {
  if (category == "hal.device" && key == "concurrency") return static_cast<int64_t>(queues_.size());
  return features_.query(category, key);
}

Result<> Device::no_messages() const {
  const ValidationMessages* messages = vulkan_->messages();
  return messages ? messages->none() : Result<>();
}

Queue& Device::queue_for(uint64_t affinity, bool computes) {
  for (Queue& queue : queues_)
    if ((affinity >> queue.traits().position & 1) && (queue.traits().computes || !computes)) return queue;
  return queues_.front();
}

Status Device::lost() const {
  if (!is_lost_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(lost_mutex_);
  return lost_;
}

void Device::lose(const Failure& reason, const LoggedSubmission* refused, TaskList& ready) {
  {
    const std::lock_guard lock(lost_mutex_);
    if (!lost_) {
      std::string report = fmt::format("device 'vulkan://{}' ({}) is lost: {}; open it again", physical_.path,
                                       physical_.properties.deviceName, reason.message);
      std::vector<Queue::Line> last;
      for (Queue& queue : queues_) queue.report(last);
      if (refused) last.push_back({refused->id, refused->text() + ", refused"});
      std::ranges::sort(last, {}, &Queue::Line::id);
      for (const Queue::Line& line : last)
        report += fmt::format("{}{}", &line == last.data() ? "; last submissions: " : "; ", line.text);
      lost_ = Status(services(), HALYARD_ABORTED, report);
      is_lost_.store(true, std::memory_order_release);
    }
  }
  const Status failure = lost();
  for (Queue& queue : queues_) queue.fail_all(failure, ready);
}

Result<std::unique_ptr<halyard_driver_memory>> Device::allocate(const halyard_memory_request_t& request,
                                                                bool later, halyard_memory_info_t& info) {
  auto memory = HALYARD_KIT_TRY(Memory::create(*heap_, tally_, request));
  if (!later) HALYARD_KIT_TRY(memory->commit());
  memory->describe(info);
  return memory;
}

Result<std::unique_ptr<halyard_driver_memory>> Device::import_memory(
    const halyard_memory_request_t& request, const halyard_external_memory_t& external,
    halyard_memory_info_t& info) {
  if (external.kind == HALYARD_EXTERNAL_OPAQUE_FD) {
    auto memory = HALYARD_KIT_TRY(Memory::import_fd(*heap_, tally_, request, external));
    memory->describe(info);
    return memory;
  }
  if (!features_.import_host_memory)
    return fail(HALYARD_UNIMPLEMENTED, "cannot import external memory of kind {}; this device imports none",
                external.kind);
  uint8_t* const bytes = HALYARD_KIT_TRY(kit::host_bytes(request, external, heap_->binding_alignment()));
  const bool writable = external.access & HALYARD_MAP_WRITE;
  auto memory = HALYARD_KIT_TRY(Memory::import(*heap_, tally_, request, bytes, writable));
  memory->describe(info);
  return memory;
}

void Device::run_ready(TaskList& ready) {
  ready.run_work();
  for (Task* call = ready.pop_call(); call; call = ready.pop_call()) {
    const std::lock_guard lock(calls_mutex_);
    try {
      if (!calls_run_) {
        calls_.start([](Task& posted) {
          TaskList made_ready;
          posted.run(posted, made_ready);
        });
        calls_run_ = true;
      }
      calls_.post(*call);
    } catch (const std::system_error&) {  // no thread: calls run here when the list is destroyed
      ready.push_call(*call);
      return;
    }
  }
}

}  // namespace halyard::vulkan
