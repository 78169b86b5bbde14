// Instance and Device: what every other part hangs from. Devices share the host's services and a pool of work
// nodes, nothing else.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device_memory.h"
#include "halyard/driver/pool.hpp"
#include "halyard/driver/trace.hpp"
#include "halyard/driver/waiting.hpp"
#include "heap.h"
#include "instance.h"
#include "pipeline_cache.h"
#include "queue.h"
#include "spirv_check.h"
#include "trace.h"

namespace halyard::vulkan {

struct Recorder;
struct Work;

struct Instance {
  explicit Instance(const Services& host);
  ~Instance();
  const Services& services() const { return host_; }
  // As in driver.h.
  std::vector<halyard_device_info_t> devices() const;
  Result<std::unique_ptr<halyard_driver_device>> open(const halyard_device_open_args_t& args);

  const kit::TraceSpanFunction trace_span;  // null: the host records no trace
  std::unique_ptr<VulkanInstance> vulkan;
  kit::Pool<Work> works;  // here, since a node may be given back after its device has closed

 private:
  const Services& host_;
};

struct DeviceOptions {
  std::string path;
  bool validate = false;
  uint32_t queues = 0;            // compute queues at most; 0: as the driver likes
  uint32_t compile_threads = 1;   // that create pipelines of one executable
  bool inline_completion = true;  // whoever submits or waits sees to what is done
  bool push_descriptors = true;   // used where there are some
  bool robust = true;             // accesses beyond a binding are bounded, where the device can do that
  SpirvPolicy spirv = SpirvPolicy::tolerant;
  std::optional<std::string> cache;  // folder of the pipeline cache; empty: none; not given: the user's
  // Of `kind://path?key=value`. INVALID_ARGUMENT: an option.
  static Result<DeviceOptions> parse(const halyard_device_open_args_t& args);
};

class Device {
 public:
  static Result<std::unique_ptr<halyard_driver_device>> open(Instance& instance,
                                                             const DeviceOptions& options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

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
  // For a binding of length 0, which descriptors cannot express.
  const Block& nothing() const { return *nothing_; }

  // ---- For the table of functions: as in driver.h

  halyard_device_properties_t properties() const;
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;
  halyard_memory_statistics_t statistics() const { return tally_.statistics(); }
  // Gives back memory that is kept for reuse.
  void trim();
  // `later`: of an alloca, whose turn brings the bytes.
  Result<std::unique_ptr<halyard_driver_memory>> allocate(const halyard_memory_request_t& request, bool later,
                                                          halyard_memory_info_t& info);
  Result<std::unique_ptr<halyard_driver_memory>> import_memory(const halyard_memory_request_t& request,
                                                               const halyard_external_memory_t& external,
                                                               halyard_memory_info_t& info);
  Result<std::unique_ptr<halyard_driver_semaphore>> create_semaphore(uint64_t initial);
  Result<std::unique_ptr<halyard_driver_semaphore>> import_semaphore(int32_t fd);
  uint32_t grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const;
  Result<std::unique_ptr<halyard_driver_executable>> load(const halyard_executable_args_t& args);
  Result<std::unique_ptr<halyard_driver_command_list>> create_list(const halyard_command_list_args_t& args);
  Result<> submit(const halyard_submission_t& submission, TaskList& ready);
  Status wait(kit::Timepoints points, bool any, int64_t deadline_ns);
  template <typename T>
  void destroy(T* object) {
    delete object;
  }

  // Runs ready tasks on a thread that must not be delayed: queue work at once, subscribers, which may be
  // slow, on another thread [R88].
  void run_ready(TaskList& ready);

  // INTERNAL where the device validates and there was a message.
  Result<> no_messages() const;

  const std::deque<Queue>& queues() const { return queues_; }
  // One of those that `affinity` names. Where none of them computes but the work needs it, one that does.
  Queue& queue_for(uint64_t affinity, bool computes);
  kit::Pool<Recorder>& recorders(const Queue& queue) { return recorders_[queue.traits().family]; }

  // Where the device is lost, what to tell whom: nothing on it will ever be done. Empty while it lives.
  Status lost() const;
  // Says so for good, and fails what is in flight; `trigger` is the work on which it was seen, where it is
  // not in flight. Without locks held.
  void lose(const Failure& reason, const Work* trigger, TaskList& ready);
  // Its id in reports.
  uint64_t next_submission() { return submissions_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // For open().
  Device(Instance& instance, const DeviceOptions& options);

 private:
  Result<> start();
  Result<> create_device(const PhysicalDevice& physical, const VulkanInstance& vulkan);

  Instance& instance_;
  const DeviceOptions options_;
  std::unique_ptr<VulkanInstance> validated_;  // of a device that validates
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
  bool calls_run_ = false;  // the thread has been started
  kit::TaskThread calls_;
  std::deque<Queue> queues_;
  std::vector<kit::Pool<Recorder>> recorders_;  // by queue family

  std::atomic<uint64_t> submissions_ = 0;
  std::atomic<bool> is_lost_ = false;
  mutable std::mutex lost_mutex_;
  Status lost_;
};

}  // namespace halyard::vulkan

struct halyard_driver_instance final : halyard::vulkan::Instance {
  using Instance::Instance;
};

struct halyard_driver_device final : halyard::vulkan::Device {
  using Device::Device;
};
