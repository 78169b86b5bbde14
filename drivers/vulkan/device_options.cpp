// Reads the options of a device from its URI.
#include "device_options.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "halyard/driver/options.hpp"

namespace halyard::vulkan {

Result<DeviceOptions> DeviceOptions::parse(const halyard_device_open_args_t& args) {
  if (view(args.kind) != "vulkan")
    return fail(HALYARD_NOT_FOUND, "no device of kind '{}'; this driver has 'vulkan'", view(args.kind));
  constexpr uint32_t kMaxCompileThreads = 64;
  DeviceOptions options;
  options.path = view(args.path);
  kit::Options given(args);
  options.validate = HALYARD_KIT_TRY(given.flag("validate", options.validate));
  options.queues = static_cast<uint32_t>(HALYARD_KIT_TRY(given.number("queues", 0, 1, kMaxQueues - 1)));
  if (const auto folder = given.text("cache")) options.cache = std::string(*folder);
  options.compile_threads =
      static_cast<uint32_t>(HALYARD_KIT_TRY(given.number("compile_threads", 1, 1, kMaxCompileThreads)));
  options.inline_completion = HALYARD_KIT_TRY(given.flag("inline_completion", options.inline_completion));
  options.separate_memory = HALYARD_KIT_TRY(given.flag("separate_memory", options.separate_memory));
  options.push_descriptors = HALYARD_KIT_TRY(given.flag("push_descriptors", options.push_descriptors));
  options.robust = HALYARD_KIT_TRY(given.flag("robust", options.robust));
  constexpr std::pair<std::string_view, SpirvPolicy> kPolicies[] = {
      {"strict", SpirvPolicy::strict}, {"tolerant", SpirvPolicy::tolerant}, {"off", SpirvPolicy::off}};
  if (const auto text = given.text("spirv")) {
    const auto* const policy =
        std::ranges::find(kPolicies, *text, &std::pair<std::string_view, SpirvPolicy>::first);
    if (policy == std::end(kPolicies)) return given.refusal("spirv", *text, "'strict', 'tolerant' or 'off'");
    options.spirv = policy->second;
  }
  HALYARD_KIT_TRY(given.finish());
  return options;
}

}  // namespace halyard::vulkan
