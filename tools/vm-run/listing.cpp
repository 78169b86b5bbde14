// Prints listings. run-module-cli.md, section 2, specifies the forms of drivers and devices.
#include "listing.h"

#include <fmt/core.h>

#include <iterator>
#include <optional>
#include <vector>

#include "common/convention.h"
#include "common/drivers.h"
#include "common/printable.h"
#include "common/standard_streams.h"
#include "common/survey.h"

namespace halyard::tools {

namespace {

std::string_view type_name(char type) {
  switch (type) {
    case 'i':
      return "i32";
    case 'I':
      return "i64";
    case 'f':
      return "f32";
    case 'F':
      return "f64";
    default:
      return "ref";
  }
}

// "i32, ref"; a span is "(ref, i64)...".
std::string type_names(std::string_view types) {
  std::string text;
  bool first = true;
  for (const char type : types) {
    if (type == 'v') continue;
    if (type == 'D') {
      text += ")...";
      continue;
    }
    if (!first) text += ", ";
    first = type == 'C';
    text += type == 'C' ? "(" : type_name(type);
  }
  return text;
}

constexpr std::string_view kRule =
    "# ============================================================================\n";

// Surveys the working drivers and their devices; reports the other drivers on standard error.
Result<Survey> sound_drivers(const Instance& instance, std::chrono::nanoseconds limit) {
  Survey survey = TOOL_TRY(survey_all(instance, limit, Depth::listed));
  const auto warn = [](const std::optional<Failure>& failure) {
    if (failure) print_error("vm-run: omitted: {}\n", printable(failure->line()));
  };
  for (const std::optional<Failure>& failure : survey.failures) warn(failure);
  for (const DriverInfo& driver : survey.drivers) warn(driver.failure);
  return survey;
}

struct DriverDevices {
  std::string driver;
  std::vector<DeviceInfo> devices;
};

// The devices of one driver; of all drivers if the name is empty.
Result<std::vector<DriverDevices>> devices_by_driver(const Instance& instance, const std::string& driver,
                                                     std::chrono::nanoseconds limit) {
  std::vector<DriverDevices> all;
  if (!driver.empty()) {
    all.push_back({driver, TOOL_TRY(survey_devices(instance, driver, limit))});
    return all;
  }
  Survey survey = TOOL_TRY(sound_drivers(instance, limit));
  auto device = std::make_move_iterator(survey.devices.begin());
  for (const DriverInfo& info : survey.drivers) {
    const auto end = device + static_cast<ptrdiff_t>(info.device_count);
    all.push_back({info.name, {device, end}});
    device = end;
  }
  return all;
}

}  // namespace

Result<> list_drivers(const Instance& instance, std::chrono::nanoseconds limit) {
  const Survey survey = TOOL_TRY(sound_drivers(instance, limit));
  fmt::print(
      "{}# Available HAL drivers\n{}# Use --list_devices={{driver name}} to enumerate available devices.\n\n",
      kRule, kRule);
  for (const DriverInfo& driver : survey.drivers)
    fmt::print("{:>16}: {}\n", printable(driver.name), printable(driver.description));
  return {};
}

Result<> explain_drivers(const Instance& instance) {
  fmt::print("{}", explanation(TOOL_TRY(DriverSearch::of(instance)), {}));
  return {};
}

Result<> list_devices(const Instance& instance, const std::string& driver, std::chrono::nanoseconds limit) {
  for (const auto& [name, devices] : TOOL_TRY(devices_by_driver(instance, driver, limit)))
    for (const DeviceInfo& device : devices) fmt::print("{}\n", printable(device.uri));
  return {};
}

Result<> dump_devices(const Instance& instance, const std::string& driver, std::chrono::nanoseconds limit) {
  constexpr std::string_view kLine =
      "# ===----------------------------------------------------------------------===\n";
  for (const auto& [name, devices] : TOOL_TRY(devices_by_driver(instance, driver, limit))) {
    fmt::print("{}# Enumerated devices for driver '{}'\n{}\n", kRule, printable(name), kRule);
    for (const DeviceInfo& device : devices) {
      // The only device of a driver has no path.
      const std::string description = device.uri.ends_with("://") ? "default" : device.name;
      fmt::print("{}# --device={}\n#   {}\n{}", kLine, printable(device.uri), printable(description), kLine);
    }
  }
  return {};
}

Result<> list_functions(const Module& module) {
  const uint32_t count = TOOL_TRY(module.info()).function_count;
  for (uint32_t i = 0; i < count; ++i) {
    const halyard_function_description_t function = TOOL_TRY(module.function(i));
    const std::string_view convention = view(function.convention);
    fmt::print("{}({}) -> ({})\n", printable(view(function.name)),
               type_names(convention_arguments(convention)), type_names(convention_results(convention)));
    if (function.declaration.size) fmt::print("    {}\n", printable(view(function.declaration)));
  }
  return {};
}

}  // namespace halyard::tools
