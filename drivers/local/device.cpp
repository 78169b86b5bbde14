// What a device says about itself, and what may be said to open one.
#include "device.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "cpu_features.h"

namespace halyard::local {

namespace {

uint64_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return BlockCache::kLargestBlock;
  return std::min(static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_size), BlockCache::kLargestBlock);
}

}  // namespace

Device::Device(Instance& owner) : instance(owner), heap(physical_memory()) {}

void Device::describe(halyard_device_properties_t& properties) const {
  properties.capabilities = HALYARD_DEVICE_RUNS_IN_CALLER | HALYARD_DEVICE_UNIFIED_MEMORY |
                            HALYARD_DEVICE_HOST_COHERENT | HALYARD_DEVICE_QUEUE_ALLOCA;
  properties.queue_count = 1;
  properties.operations = (uint64_t{1} << (HALYARD_OPERATION_EXECUTE + 1)) - 1;  // all of them
  properties.memory_alignment = BlockCache::kAlignment;
  properties.maximum_allocation = heap.limit();
  properties.import_alignment = BlockCache::kAlignment;
}

std::optional<int64_t> Device::query(std::string_view category, std::string_view key) const {
  if ((category == "hal.device" || category == "hal.dispatch") && key == "concurrency") return 1;
  if (category == "hal.cpu") return cpu_feature(key);
  return std::nullopt;
}

Result<> check_open(const halyard_device_open_args_t& args) {
  HALYARD_TRY(check_extensions(args.extensions));
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
  if (args.option_count != 0)
    return fail(Code::INVALID_ARGUMENT, "unknown option '{}'; '{}' devices have no options",
                view(args.options[0].key), kind->name);
  return {};
}

}  // namespace halyard::local
