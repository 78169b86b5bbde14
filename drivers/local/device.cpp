// Properties of a device, and its options.
#include "device.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "base/cpu_features.h"
#include "halyard/driver/host_memory.hpp"
#include "halyard/driver/options.hpp"
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
  if (options.jit == Jit::hot) compile_queue_ = std::make_shared<vm::CompileQueue>();
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
  // Kernels that are being compiled or wait for it: closing the device waits for the one being compiled.
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

std::vector<halyard_device_info_t> Instance::devices() const {
  std::vector<halyard_device_info_t> infos;
  for (const DeviceKind& kind : kDeviceKinds) {
    halyard_device_info_t& info = infos.emplace_back();
    info.kind = kind.name;
    info.path = "";
    info.name = kind.description;
  }
  return infos;
}

Result<DeviceOptions> DeviceOptions::parse(const halyard_device_open_args_t& args) {
  constexpr uint32_t kMaxWorkers = 1024;
  constexpr uint32_t kMaxQueues = 64;  // the number of bits of an affinity
  const auto* kind = std::ranges::find(kDeviceKinds, view(args.kind),
                                       [](const DeviceKind& entry) { return std::string_view(entry.name); });
  if (kind == std::end(kDeviceKinds)) {
    std::string known;
    for (const DeviceKind& entry : kDeviceKinds)
      known += fmt::format("{}'{}'", known.empty() ? "" : ", ", entry.name);
    return fail(Code::NOT_FOUND, "no device of kind '{}'; this driver has {}", view(args.kind), known);
  }
  if (args.path.size != 0)
    return fail(Code::NOT_FOUND, "no device '{}://{}'; the only one is '{}://'", kind->name, view(args.path),
                kind->name);
  DeviceOptions options;
  kit::Options given(args);
  if (kind->has_workers) {
    const uint32_t processors = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxWorkers);
    options.workers =
        static_cast<uint32_t>(HALYARD_TRY(from_kit(given.number("workers", processors, 1, kMaxWorkers))));
    options.queues = static_cast<uint32_t>(HALYARD_TRY(from_kit(given.number("queues", 1, 1, kMaxQueues))));
  }
  options.validate = HALYARD_TRY(from_kit(given.flag("validate", options.validate)));
  options.native = HALYARD_TRY(from_kit(given.flag("native", options.native)));
  if (const auto jit = given.text("jit")) {
    options.jit = *jit == "always" ? Jit::always : *jit == "auto" ? Jit::hot : Jit::off;
    if (options.jit == Jit::off && *jit != "off")
      return from_kit<DeviceOptions>(given.refusal("jit", *jit, "'off', 'auto' or 'always'"));
  }
  options.jit_cache = given.text("jit_cache").value_or("");
  if (const auto math = given.text("jit_math")) {
    options.fast_math = *math == "fast";
    if (!options.fast_math && *math != "exact")
      return from_kit<DeviceOptions>(given.refusal("jit_math", *math, "'exact' or 'fast'"));
  }
  if (const auto isa = given.text("isa")) {
    options.kernels = vmvx::find_kernels(*isa);
    std::string names = "'best' or 'baseline'";
    for (const std::string_view name : vmvx::instruction_sets()) names += fmt::format(" or '{}'", name);
    if (!options.kernels) return from_kit<DeviceOptions>(given.refusal("isa", *isa, names));
  }
  for (const std::string_view plugin : given.all("plugin")) options.plugins.emplace_back(plugin);
  HALYARD_TRY(from_kit(given.finish()));
  if (!options.native && !options.plugins.empty())
    return fail(Code::INVALID_ARGUMENT,
                "option 'plugin' names native code, '{}', but option 'native' is 0; leave out one of them",
                options.plugins[0]);
  return options;
}

}  // namespace halyard::local
