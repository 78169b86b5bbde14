// Reads the options of a device from its URI.
#include "device_options.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <thread>

#include "halyard/driver/options.hpp"
#include "instance.h"

namespace halyard::local {

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
  options.profile = HALYARD_TRY(from_kit(given.flag("profile", options.profile)));
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
