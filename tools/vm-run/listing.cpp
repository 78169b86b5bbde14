// Listings. The forms of drivers and devices are those of run-module-cli.md, section 2.
#include "listing.h"

#include <fmt/core.h>

#include "common/convention.h"
#include "common/drivers.h"
#include "common/printable.h"

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

}  // namespace

Result<> list_drivers(halyard_instance_t instance) {
  halyard_driver_entry_t* entries = nullptr;
  size_t count = 0;
  TOOL_TRY(check(halyard_instance_drivers(instance, &entries, &count)));
  const Block<halyard_driver_entry_t> owned(entries);
  fmt::print(
      "{}# Available HAL drivers\n{}# Use --list_devices={{driver name}} to enumerate available devices.\n\n",
      kRule, kRule);
  for (size_t i = 0; i < count; ++i)
    fmt::print("{:>16}: {}\n", printable(entries[i].name), printable(entries[i].description));
  return {};
}

Result<> explain_drivers(halyard_instance_t instance) {
  fmt::print("{}", explanation(TOOL_TRY(DriverSearch::of(instance)), {}));
  return {};
}

Result<> list_devices(halyard_instance_t instance, const std::string& driver) {
  halyard_device_entry_t* entries = nullptr;
  size_t count = 0;
  TOOL_TRY(check(halyard_instance_devices(instance, driver.c_str(), &entries, &count)));
  const Block<halyard_device_entry_t> owned(entries);
  for (size_t i = 0; i < count; ++i) fmt::print("{}\n", printable(entries[i].uri));
  return {};
}

Result<> dump_devices(halyard_instance_t instance, const std::string& driver) {
  std::vector<std::string> drivers = {driver};
  if (driver.empty()) {
    halyard_driver_entry_t* entries = nullptr;
    size_t count = 0;
    TOOL_TRY(check(halyard_instance_drivers(instance, &entries, &count)));
    const Block<halyard_driver_entry_t> owned(entries);
    drivers.clear();
    for (size_t i = 0; i < count; ++i) drivers.emplace_back(entries[i].name);
  }
  constexpr std::string_view kLine =
      "# ===----------------------------------------------------------------------===\n";
  for (const std::string& name : drivers) {
    halyard_device_entry_t* entries = nullptr;
    size_t count = 0;
    TOOL_TRY(check(halyard_instance_devices(instance, name.c_str(), &entries, &count)));
    const Block<halyard_device_entry_t> owned(entries);
    fmt::print("{}# Enumerated devices for driver '{}'\n{}\n", kRule, printable(name), kRule);
    for (size_t i = 0; i < count; ++i) {
      // A driver's only device has no path.
      const std::string_view uri = entries[i].uri;
      const std::string_view description = uri.ends_with("://") ? "default" : entries[i].name;
      fmt::print("{}# --device={}\n#   {}\n{}", kLine, printable(entries[i].uri), printable(description),
                 kLine);
    }
  }
  return {};
}

Result<> list_functions(halyard_module_t module) {
  halyard_module_info_t info = {};
  info.struct_size = sizeof info;
  TOOL_TRY(check(halyard_module_info(module, &info)));
  for (uint32_t i = 0; i < info.function_count; ++i) {
    halyard_function_description_t function = {};
    function.struct_size = sizeof function;
    TOOL_TRY(check(halyard_module_function(module, i, &function)));
    const std::string_view convention = view(function.convention);
    fmt::print("{}({}) -> ({})\n", printable(view(function.name)),
               type_names(convention_arguments(convention)), type_names(convention_results(convention)));
    if (function.declaration.size) fmt::print("    {}\n", printable(view(function.declaration)));
  }
  return {};
}

}  // namespace halyard::tools
