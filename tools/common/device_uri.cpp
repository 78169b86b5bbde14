#include "common/device_uri.h"

#include <algorithm>

namespace halyard::tools {

DeviceUri::DeviceUri(std::string_view uri) {
  constexpr std::string_view kBlanks = " \t\r\n";
  uri.remove_prefix(std::min(uri.find_first_not_of(kBlanks), uri.size()));
  uri = uri.substr(0, uri.find_last_not_of(kBlanks) + 1);
  const size_t question = std::min(uri.find('?'), uri.size());
  const std::string_view place = uri.substr(0, question);
  const size_t scheme = place.find("://");
  kind = place.substr(0, scheme);
  if (scheme != std::string_view::npos) path = place.substr(scheme + 3);
  if (scheme == std::string_view::npos && kind.ends_with(':')) kind.pop_back();
  std::string_view rest = uri.substr(std::min(question + 1, uri.size()));
  while (!rest.empty()) {
    const std::string_view option = rest.substr(0, rest.find('&'));
    const size_t equals = option.find('=');
    const bool has_value = equals != std::string_view::npos;
    options.emplace_back(option.substr(0, equals),
                         has_value ? std::optional<std::string>(option.substr(equals + 1)) : std::nullopt);
    rest.remove_prefix(std::min(option.size() + 1, rest.size()));
  }
}

bool DeviceUri::has(std::string_view key) const {
  return std::ranges::any_of(options, [&](const auto& option) { return option.first == key; });
}

}  // namespace halyard::tools
