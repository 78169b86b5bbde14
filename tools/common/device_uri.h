// The parts of a device's URI, kind[://path][?key=value&...], by which tools choose options. The library
// checks it when the device is opened.
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
  std::vector<std::pair<std::string, std::optional<std::string>>> options;  // no value: there is no '='

  explicit DeviceUri(std::string_view uri);
  bool has(std::string_view key) const;
  bool is_local() const { return kind == "local-sync" || kind == "local-task"; }
};

}  // namespace halyard::tools
