// What a device says about itself, and what may be said to open one.
#include "device.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <thread>

#include "base/cpu_features.h"
#include "native/library.h"
#include "vm/compile/compiler.h"

namespace halyard::local {

namespace {

uint64_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return BlockCache::kLargestBlock;
  return std::min(static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_size), BlockCache::kLargestBlock);
}

}  // namespace

Device::Device(Instance& owner, const DeviceOptions& chosen)
    : instance(owner), options(chosen), heap(physical_memory(), chosen.validate) {
  if (options.workers != 0) workers_.emplace(options.workers);
}

Result<> Device::start() {
  if (options.jit) HALYARD_TRY(vm::Compiler::find());
  const abi::Environment environment = new_environment();
  for (const std::string& plugin : options.plugins) HALYARD_TRY(plugins.load(plugin, environment));
  return workers_ ? workers_->start() : Result<>();
}

void Device::describe(halyard_device_properties_t& properties) const {
  properties.capabilities = HALYARD_DEVICE_UNIFIED_MEMORY | HALYARD_DEVICE_HOST_COHERENT |
                            HALYARD_DEVICE_QUEUE_ALLOCA | HALYARD_DEVICE_WRITES_CONSTANTS |
                            HALYARD_DEVICE_STOPS_WORK;
  if (!workers_) properties.capabilities |= HALYARD_DEVICE_RUNS_IN_CALLER;
  properties.queue_count = options.queues;
  properties.operations = (uint64_t{1} << (HALYARD_OPERATION_EXECUTE + 1)) - 1;  // all of them
  properties.memory_alignment = BlockCache::kAlignment;
  properties.maximum_allocation = heap.limit();
  properties.import_alignment = BlockCache::kAlignment;
}

std::optional<int64_t> Device::query(std::string_view category, std::string_view key) const {
  if (category == "hal.device" && key == "concurrency") return options.queues;
  if (category == "hal.dispatch" && key == "concurrency") return std::max<uint32_t>(options.workers, 1);
  if (category == "hal.cpu") return cpu_feature(key);
  return std::nullopt;
}

namespace {

constexpr uint32_t kMostWorkers = 1024;
constexpr uint32_t kMostQueues = 64;  // an affinity has as many bits

struct Option {
  std::string_view key;
  bool needs_workers;  // only devices that have some know it
  std::string (*expected)();
  bool (*set)(DeviceOptions& options, std::string_view text);  // false: not what is expected
};
// The only option that may be given more than once.
constexpr std::string_view kPlugin = "plugin";

template <uint32_t kLeast, uint32_t kMost, typename T>
bool set_number(T& option, std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < kLeast || value > kMost)
    return false;
  option = static_cast<T>(value);
  return true;
}

constexpr Option kOptions[] = {
    {"workers", true, [] { return fmt::format("a number of threads from 1 to {}", kMostWorkers); },
     [](DeviceOptions& options, std::string_view text) {
       return set_number<1, kMostWorkers>(options.workers, text);
     }},
    {"queues", true, [] { return fmt::format("a number of queues from 1 to {}", kMostQueues); },
     [](DeviceOptions& options, std::string_view text) {
       return set_number<1, kMostQueues>(options.queues, text);
     }},
    {"validate", false, [] { return std::string("0 or 1"); },
     [](DeviceOptions& options, std::string_view text) { return set_number<0, 1>(options.validate, text); }},
    {"native", false, [] { return std::string("0 or 1"); },
     [](DeviceOptions& options, std::string_view text) { return set_number<0, 1>(options.native, text); }},
    {"jit", false, [] { return std::string("'off' or 'always'"); },
     [](DeviceOptions& options, std::string_view text) {
       options.jit = text == "always";
       return options.jit || text == "off";
     }},
    {"isa", false,
     [] {
       std::string names = "'best' or 'baseline'";
       for (const std::string_view name : vmvx::instruction_sets()) names += fmt::format(" or '{}'", name);
       return names;
     },
     [](DeviceOptions& options, std::string_view text) {
       options.kernels = vmvx::find_kernels(text);
       return options.kernels != nullptr;
     }},
};

Result<> set_option(const DeviceKind& kind, const halyard_option_t& given, DeviceOptions& options) {
  if (view(given.key) == kPlugin) {
    options.plugins.emplace_back(view(given.value));
    return {};
  }
  std::string known;
  for (const Option& option : kOptions) {
    if (option.needs_workers && !kind.has_workers) continue;
    if (option.key != view(given.key)) {
      known += fmt::format("{}'{}'", known.empty() ? "" : ", ", option.key);
      continue;
    }
    const std::string_view text = view(given.value);
    if (!option.set(options, text))
      return fail(Code::INVALID_ARGUMENT, "option '{}' of '{}' is '{}'; expected {}", option.key, kind.name,
                  text, option.expected());
    return {};
  }
  return fail(Code::INVALID_ARGUMENT, "unknown option '{}'; '{}' devices have {}, '{}'", view(given.key),
              kind.name, known, kPlugin);
}

}  // namespace

Result<DeviceOptions> DeviceOptions::parse(const halyard_device_open_args_t& args) {
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
  DeviceOptions options;
  if (kind->has_workers) options.workers = std::clamp(std::thread::hardware_concurrency(), 1u, kMostWorkers);
  for (uint32_t i = 0; i < args.option_count; ++i) HALYARD_TRY(set_option(*kind, args.options[i], options));
  if (!options.native && !options.plugins.empty())
    return fail(
        Code::INVALID_ARGUMENT,
        "option 'plugin' names native code, '{}', and option 'native' refuses all of it; leave out one",
        options.plugins[0]);
  return options;
}

}  // namespace halyard::local
