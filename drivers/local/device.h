// Instance and Device, for executables and queue work; driver.cpp adds the functions that use executables and
// queue work. Devices share only the host's services and a cache of small objects.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device_memory.h"
#include "native/plugins.h"
#include "node_cache.h"
#include "status.h"
#include "thread_pool.h"
#include "timeline.h"
#include "vm/compile/compile_queue.h"
#include "vmvx/kernels.h"

namespace halyard::local {

struct Instance {
  explicit Instance(const Services& services) : host(services) {}
  const Services& services() const { return host; }
  // See driver.h.
  std::vector<halyard_device_info_t> devices() const;

  const Services& host;
  NodeCache nodes;
};

// The kinds of devices, as users name them in a URI.
struct DeviceKind {
  const char* name;
  const char* description;
  bool has_workers;
};
inline constexpr DeviceKind kDeviceKinds[] = {
    {"local-sync", "CPU, work is done at once on the calling thread", false},
    {"local-task", "CPU, work is done by worker threads", true},
};

// When bytecode kernels are compiled: never, when loaded, or when hot.
enum class Jit : uint8_t { off, always, hot };

struct DeviceOptions {
  uint32_t workers = 0;   // maximum number of threads; 0: work runs on the thread that made it ready
  uint32_t queues = 1;    // reported to programs; all of them share one queue
  bool validate = false;  // see device_memory.h
  bool native = true;     // accept executables with machine code
  Jit jit = Jit::off;
  std::string jit_cache = {};             // folder for compiled kernels; empty: none
  bool fast_math = false;                 // for compiled kernels
  std::vector<std::string> plugins = {};  // arguments of Plugins::load(), in order
  const vmvx::Kernels* kernels = vmvx::find_kernels("best");
  // Parses `kind://path?key=value`. NOT_FOUND: unknown kind or path. INVALID_ARGUMENT: a bad option.
  static Result<DeviceOptions> parse(const halyard_device_open_args_t& args);
};

struct Device {
  Device(Instance& owner, const DeviceOptions& chosen);

  Instance& instance;
  const DeviceOptions options;
  Heap heap;
  Plugins plugins;  // imports for native executables

  // Must be called first. RESOURCE_EXHAUSTED: no thread could be started. Also returns the failures of
  // plugins and of the compiler.
  Result<> start();
  // Null, unless kernels are compiled when they become hot.
  const std::shared_ptr<vm::CompileQueue>& compile_queue() const { return compile_queue_; }
  ThreadPool* thread_pool() { return thread_pool_ ? &*thread_pool_ : nullptr; }  // null: no workers
  const Services& services() const { return instance.host; }

  // ---- Called by the table of functions; see driver.h

  halyard_device_properties_t properties() const;
  std::optional<int64_t> query(std::string_view category, std::string_view key) const;
  halyard_memory_statistics_t statistics() const { return heap.statistics(); }
  void trim();
  // `later`: the memory belongs to an alloca and gets its bytes when the alloca runs.
  Result<NodeCache::Owned<halyard_driver_memory>> allocate(const halyard_memory_request_t& request,
                                                           bool later, halyard_memory_info_t& info);
  Result<NodeCache::Owned<halyard_driver_memory>> import_memory(const halyard_memory_request_t& request,
                                                                const halyard_external_memory_t& external,
                                                                halyard_memory_info_t& info);
  Result<NodeCache::Owned<halyard_driver_semaphore>> create_semaphore(uint64_t initial);
  HostStatus wait(kit::Timepoints points, bool any, int64_t deadline_ns) const;
  template <typename T>
  void destroy(T* object) {
    instance.nodes.destroy(object);
  }

 private:
  std::shared_ptr<vm::CompileQueue> compile_queue_;
  std::optional<ThreadPool> thread_pool_;  // destroyed before the members that its threads use
};

}  // namespace halyard::local
