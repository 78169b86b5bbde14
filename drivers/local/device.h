// Instance and Device: what every other part hangs from. Devices share the host's services and a cache of
// small objects, nothing else.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device_memory.h"
#include "native/plugins.h"
#include "node_cache.h"
#include "status.h"
#include "timeline.h"
#include "vmvx/kernels.h"
#include "workers.h"

namespace halyard::local {

struct Instance {
  explicit Instance(const Services& services) : host(services) {}
  const Services& services() const { return host; }
  // As in driver.h.
  std::vector<halyard_device_info_t> devices() const;
  Result<std::unique_ptr<halyard_driver_device>> open(const halyard_device_open_args_t& args);

  const Services& host;
  NodeCache nodes;
};

// What a user writes in a URI, and what it is.
struct DeviceKind {
  const char* name;
  const char* description;
  bool has_workers;
};
inline constexpr DeviceKind kDeviceKinds[] = {
    {"local-sync", "CPU, work is done at once on the calling thread", false},
    {"local-task", "CPU, work is done by worker threads", true},
};

struct DeviceOptions {
  uint32_t workers = 0;                   // threads at most; 0: work is done by who makes it due
  uint32_t queues = 1;                    // names for one and the same queue
  bool validate = false;                  // device_memory.h
  bool native = true;                     // executables may be machine code
  bool jit = false;                       // kernels of bytecode are compiled when they are loaded
  std::vector<std::string> plugins = {};  // what Plugins::load() takes, in order
  const vmvx::Kernels* kernels = vmvx::find_kernels("best");
  // Of `kind://path?key=value`. NOT_FOUND: no such kind or path. INVALID_ARGUMENT: an option.
  static Result<DeviceOptions> parse(const halyard_device_open_args_t& args);
};

struct Device {
  Device(Instance& owner, const DeviceOptions& chosen);

  Instance& instance;
  const DeviceOptions options;
  Heap heap;
  Plugins plugins;  // what native executables may import

  // RESOURCE_EXHAUSTED: no thread. Or a plugin's failure, or the compiler's. Before anything else.
  Result<> start();
  Workers* workers() { return workers_ ? &*workers_ : nullptr; }  // null: there are none
  const Services& services() const { return instance.host; }

  // ---- For the table of functions: as in driver.h

  halyard_device_properties_t properties() const;
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;
  halyard_memory_statistics_t statistics() const { return heap.statistics(); }
  void trim();
  // `later`: of an alloca, whose turn brings the bytes.
  Result<NodeCache::Owned<halyard_driver_memory>> allocate(const halyard_memory_request_t& request,
                                                           bool later, halyard_memory_info_t& info);
  Result<NodeCache::Owned<halyard_driver_memory>> import_memory(const halyard_memory_request_t& request,
                                                                const halyard_external_memory_t& external,
                                                                halyard_memory_info_t& info);
  Result<NodeCache::Owned<halyard_driver_semaphore>> create_semaphore(uint64_t initial);
  uint32_t grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const;
  Result<std::unique_ptr<halyard_driver_executable>> load(const halyard_executable_args_t& args) const;
  Result<std::unique_ptr<halyard_driver_command_list>> create_list(
      const halyard_command_list_args_t& args) const;
  Result<> submit(const halyard_submission_t& submission, DueList& due);
  HostStatus wait(kit::Timepoints points, bool any, int64_t deadline_ns) const;
  void help(kit::Timepoints points, bool any);
  template <typename T>
  void destroy(T* object) {
    instance.nodes.destroy(object);
  }

 private:
  std::optional<Workers> workers_;  // gone before what they use
};

}  // namespace halyard::local

struct halyard_driver_instance final : halyard::local::Instance {
  using Instance::Instance;
};

struct halyard_driver_device final : halyard::local::Device {
  using Device::Device;
};
