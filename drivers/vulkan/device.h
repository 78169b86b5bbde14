// Device: the options and the parts of a device, for executables and queue work. driver.cpp adds the
// functions that use executables and queue work.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "device_memory.h"
#include "device_options.h"
#include "halyard/driver/pool.hpp"
#include "halyard/driver/waiting.hpp"
#include "heap.h"
#include "instance.h"
#include "pipeline_cache.h"
#include "queue.h"

namespace halyard::vulkan {

struct CommandEncoder;

// The operations of queue_submit, except file transfers, which the host stages.
inline constexpr uint64_t kOperationBits = 1u << HALYARD_OPERATION_BARRIER | 1u << HALYARD_OPERATION_ALLOCA |
                                           1u << HALYARD_OPERATION_DEALLOCA | 1u << HALYARD_OPERATION_FILL |
                                           1u << HALYARD_OPERATION_UPDATE | 1u << HALYARD_OPERATION_COPY |
                                           1u << HALYARD_OPERATION_DISPATCH | 1u << HALYARD_OPERATION_EXECUTE;

class Device {
 public:
  // start() must be called first.
  Device(Instance& instance, const DeviceOptions& options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();
  Result<> start();

  Instance& instance() const { return instance_; }
  const Services& services() const { return instance_.services(); }
  const DeviceOptions& options() const { return options_; }
  const Features& features() const { return features_; }
  std::string_view name() const { return physical_.properties.deviceName; }
  const DeviceFunctions& vk() const { return vk_; }
  VkDevice handle() const { return device_; }
  Heap& heap() { return *heap_; }
  MemoryTally& tally() { return tally_; }
  PipelineCache& pipeline_cache() { return *pipeline_cache_; }
  bool uses_push_descriptors() const { return uses_push_descriptors_; }
  // Used for bindings of length 0, which descriptors cannot express.
  const Block& nothing() const { return *nothing_; }

  // ---- Called by the table of functions; see driver.h

  halyard_device_properties_t properties() const;
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;
  halyard_memory_statistics_t statistics() const { return tally_.statistics(); }
  // Frees cached memory.
  void trim();
  // `later`: the memory belongs to an alloca and gets its bytes when the alloca runs.
  Result<std::unique_ptr<halyard_driver_memory>> allocate(const halyard_memory_request_t& request, bool later,
                                                          halyard_memory_info_t& info);
  Result<std::unique_ptr<halyard_driver_memory>> import_memory(const halyard_memory_request_t& request,
                                                               const halyard_external_memory_t& external,
                                                               halyard_memory_info_t& info);
  Status wait(kit::Timepoints points, bool any, int64_t deadline_ns);
  template <typename T>
  void destroy(T* object) {
    delete object;
  }

  // Runs ready tasks of a thread that must not be delayed: queue work at once; subscribers, which may be
  // slow, on another thread [R88].
  void run_ready(TaskList& ready);

  // INTERNAL: the device validates, and a validation message has arrived.
  Result<> no_messages() const;

  const std::deque<Queue>& queues() const { return queues_; }
  // Chooses a queue in `affinity`. If the work needs compute and no queue in `affinity` supports it, chooses
  // another queue that does.
  Queue& queue_for(uint64_t affinity, bool computes);
  kit::Pool<CommandEncoder>& encoders(const Queue& queue) { return encoders_[queue.traits().family]; }

  // The failure of all work if the device is lost; otherwise empty.
  Status lost() const;
  // Marks the device as lost and fails the work in flight. `refused` is the submission that reported the
  // loss, if it is not in flight. Must be called without locks.
  void lose(const Failure& reason, const LoggedSubmission* refused, TaskList& ready);
  // Returns the id of new work, for reports.
  uint64_t next_submission() { return submissions_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  Result<> create_device(const PhysicalDevice& physical, const VulkanInstance& vulkan);
  // Writes zeros to a block, and blocks until they are there.
  Result<> clear(const Block& block);

  Instance& instance_;
  const DeviceOptions options_;
  std::unique_ptr<VulkanInstance> validated_;  // only if the device validates
  const VulkanInstance* vulkan_ = nullptr;
  PhysicalDevice physical_;
  Features features_;
  DeviceFunctions vk_;
  VkDevice device_ = VK_NULL_HANDLE;
  std::optional<Heap> heap_;
  MemoryTally tally_;
  std::optional<PipelineCache> pipeline_cache_;
  bool uses_push_descriptors_ = false;
  Block* nothing_ = nullptr;
  std::mutex calls_mutex_;
  bool calls_run_ = false;  // whether the thread for calls has been started
  kit::TaskThread calls_;
  std::deque<Queue> queues_;
  std::vector<kit::Pool<CommandEncoder>> encoders_;  // by queue family

  std::atomic<uint64_t> submissions_ = 0;
  std::atomic<bool> is_lost_ = false;
  mutable std::mutex lost_mutex_;
  Status lost_;
};

}  // namespace halyard::vulkan

struct halyard_driver_device : halyard::vulkan::Device {
  using Device::Device;
};
