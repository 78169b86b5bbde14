#include "common/untrusted.h"

#include <algorithm>

#include "common/device_uri.h"
#include "common/program_flags.h"
#include "common/ranks.h"

namespace halyard::tools {

namespace {

struct Refused {
  const Flag& flag;
  std::string_view loads;
};
constexpr Refused kLibraries[] = {
    {flag::executable_plugin, "a plugin"},
    {flag::driver, "a driver"},
    {flag::channel_provider, "a channel provider"},
};

std::unexpected<Failure> refuse(const Flag& flag, std::string_view value, std::string_view why) {
  return fail(HALYARD_PERMISSION_DENIED, "{}={}: {}; remove this flag or, if you trust the modules, {}",
              flag.text(), value, why, flag::untrusted);
}

Result<> check_device(const std::string& text) {
  const DeviceUri uri(text);
  if (!uri.is_local())
    return refuse(flag::device, text,
                  "expected a local device (local-sync, local-task), because only their kernels are verified "
                  "before they run");
  for (const auto& [key, value] : uri.options)
    if (key == "plugin" || (key == "native" && value != "0"))
      return refuse(flag::device, text,
                    fmt::format("expected a device without the option '{}', which allows machine code", key));
  return {};
}

}  // namespace

Result<> check_untrusted(const Flags& flags) {
  if (!flags[flag::untrusted]) return {};
  if (flags.has(flag::allow_native) && flags[flag::allow_native] == YesNo::yes)
    return refuse(flag::allow_native, "yes", "expected no, because nothing checks machine code");
  for (const auto& [flag, loads] : kLibraries)
    if (flags.has(flag))
      return refuse(flag, flags.given(flag).front(),
                    fmt::format("expected no library on the command line, found {}, whose code would run in "
                                "this process",
                                loads));
  for (const std::string& uri : flags[flag::device]) TOOL_TRY(check_device(uri));
  return {};
}

Result<uint64_t> memory_limit(const Flags& flags) {
  return TOOL_TRY(flags[flag::max_memory]).value_or(flags[flag::untrusted] ? kUntrustedMemory : 0);
}

Result<std::chrono::nanoseconds> time_limit(const Flags& flags) {
  return TOOL_TRY(flags[flag::timeout])
      .value_or(flags[flag::untrusted] ? kUntrustedTime : std::chrono::nanoseconds(0));
}

}  // namespace halyard::tools
