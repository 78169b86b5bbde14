// Device: the options and the parts of a device, for executables and queue work. driver.cpp adds the
// functions that use executables and queue work.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "device_memory.h"
#include "device_options.h"
#include "heap.h"
#include "instance.h"
#include "native/plugins.h"
#include "status.h"
#include "thread_pool.h"
#include "timeline.h"
#include "vm/compile/compile_queue.h"

namespace halyard::local {

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
