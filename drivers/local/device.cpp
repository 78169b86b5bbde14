// The parts and the properties of a device.
#include "device.h"

#include <unistd.h>

#include <algorithm>

#include "base/cpu_features.h"
#include "halyard/driver/host_memory.hpp"
#include "native/library.h"
#include "vm/compile/compiler.h"

namespace halyard::local {

namespace {

uint64_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return BlockCache::kMaxBlock;
  return std::min(static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_size), BlockCache::kMaxBlock);
}

}  // namespace

Device::Device(Instance& owner, const DeviceOptions& chosen)
    : instance(owner), options(chosen), heap(physical_memory(), chosen.validate) {
  if (options.workers != 0) thread_pool_.emplace(options.workers);
}

Result<> Device::start() {
  if (options.jit == Jit::always) HALYARD_TRY(vm::Compiler::find());
  if (options.jit == Jit::hot)
    compile_queue_ = std::make_shared<vm::CompileQueue>(vm::Sampling(), std::max(options.workers, 1u));
  const abi::Environment environment = new_environment();
  for (const std::string& plugin : options.plugins) HALYARD_TRY(plugins.load(plugin, environment));
  return thread_pool_ ? thread_pool_->start() : Result<>();
}

halyard_device_properties_t Device::properties() const {
  halyard_device_properties_t properties = {};
  properties.capabilities = HALYARD_DEVICE_UNIFIED_MEMORY | HALYARD_DEVICE_HOST_COHERENT |
                            HALYARD_DEVICE_QUEUE_ALLOCA | HALYARD_DEVICE_WRITES_CONSTANTS |
                            HALYARD_DEVICE_STOPS_WORK;
  if (!thread_pool_) properties.capabilities |= HALYARD_DEVICE_RUNS_IN_CALLER;
  properties.queue_count = options.queues;
  properties.operations = (uint64_t{1} << (HALYARD_OPERATION_EXECUTE + 1)) - 1;  // all of them
  properties.memory_alignment = BlockCache::kAlignment;
  properties.maximum_allocation = heap.limit();
  properties.import_alignment = BlockCache::kAlignment;
  return properties;
}

std::optional<int64_t> Device::query(std::string_view category, std::string_view key) const {
  if (category == "hal.device" && key == "concurrency") return options.queues;
  if (category == "hal.dispatch" && key == "concurrency") return std::max<uint32_t>(options.workers, 1);
  if (category == "hal.cpu") return cpu_feature(key);
  // Kernels being compiled or waiting to be. Closing the device waits for the kernel being compiled.
  if (category == "halyard.jit" && key == "compiling")
    return compile_queue_ ? static_cast<int64_t>(compile_queue_->pending()) : 0;
  return std::nullopt;
}

void Device::trim() {
  heap.trim();
  instance.nodes.trim();
}

Result<NodeCache::Owned<halyard_driver_memory>> Device::allocate(const halyard_memory_request_t& request,
                                                                 bool later, halyard_memory_info_t& info) {
  HALYARD_TRY(check_type(request));
  auto memory = instance.nodes.make<halyard_driver_memory>(heap, request, later);
  if (!later) HALYARD_TRY(memory->commit());
  memory->describe(info);
  return memory;
}

Result<NodeCache::Owned<halyard_driver_memory>> Device::import_memory(
    const halyard_memory_request_t& request, const halyard_external_memory_t& external,
    halyard_memory_info_t& info) {
  uint8_t* const bytes = HALYARD_TRY(from_kit(kit::host_bytes(request, external, BlockCache::kAlignment)));
  HALYARD_TRY(check_type(request));
  auto memory = instance.nodes.make<halyard_driver_memory>(heap, bytes, external.access, request);
  memory->describe(info);
  return memory;
}

Result<NodeCache::Owned<halyard_driver_semaphore>> Device::create_semaphore(uint64_t initial) {
  return instance.nodes.make<halyard_driver_semaphore>(instance.host, instance.nodes, initial);
}

HostStatus Device::wait(kit::Timepoints points, bool any, int64_t deadline_ns) const {
  return kit::wait_for<Semaphore>(instance.host, points, any, deadline_ns);
}

}  // namespace halyard::local
