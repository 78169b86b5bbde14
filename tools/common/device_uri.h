// Parses a device's URI, kind[://path][?key=value&...], for tools that choose options by it. The library
// checks the URI when it opens the device.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halyard::tools {

struct DeviceUri {
  std::string kind;  // "local-task"
  std::string path;
  std::vector<std::pair<std::string, std::optional<std::string>>> options;  // nullopt: no '='

  explicit DeviceUri(std::string_view uri);
  bool has(std::string_view key) const;
  bool is_local() const { return kind == "local-sync" || kind == "local-task"; }
};

}  // namespace halyard::tools
