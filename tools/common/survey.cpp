// The order: the search, the probes, then an instance with only the drivers that passed.
#include "common/survey.h"

#include <algorithm>

#include "common/probe.h"

namespace halyard::tools {

namespace {

Result<> open(const Instance& instance, DeviceInfo& info) {
  info.device = TOOL_TRY(instance.open(info.uri));
  info.description = TOOL_TRY(info.device.describe());
  if (const auto memory = info.device.memory()) info.memory = *memory;
  return {};
}

// Lists the devices of a driver without opening them.
Result<std::vector<DeviceInfo>> list(const Instance& instance, const std::string& driver) {
  std::vector<DeviceInfo> devices;
  for (const halyard_device_entry_t& entry : TOOL_TRY(instance.devices(driver)))
    devices.push_back({.uri = entry.uri, .name = entry.name});
  return devices;
}

void take_driver(Survey& survey, size_t entry, const halyard_driver_entry_t& found, Depth depth) {
  DriverInfo& driver = survey.drivers.emplace_back();
  driver.entry = entry;
  driver.name = found.name;
  driver.description = found.description;
  Result<std::vector<DeviceInfo>> devices = list(survey.instance, driver.name);
  if (!devices) {
    driver.failure = std::move(devices.error());
    return;
  }
  driver.device_count = devices->size();
  for (DeviceInfo& device : *devices) {
    if (depth == Depth::listed) break;
    if (Result<> opened = open(survey.instance, device); !opened) device.failure = std::move(opened.error());
  }
  std::ranges::move(*devices, std::back_inserter(survey.devices));
}

// Tries every suitable driver.
std::vector<std::optional<Failure>> probe_all(const DriverSearch& search, std::chrono::nanoseconds limit) {
  const auto entries = search.entries();
  std::vector<size_t> places;
  std::vector<std::string> paths;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!is_accepted_driver(entries[i])) continue;
    places.push_back(i);
    paths.emplace_back(entries[i].path);
  }
  std::vector<std::optional<Failure>> failures(entries.size());
  std::vector<std::optional<Failure>> tried = probe_drivers(paths, limit);
  for (size_t i = 0; i < places.size(); ++i) failures[places[i]] = std::move(tried[i]);
  return failures;
}

}  // namespace

size_t Survey::refused() const {
  size_t count = 0;
  for (size_t i = 0; i < failures.size(); ++i)
    count += failures[i] || search.entries()[i].outcome == HALYARD_SEARCH_REFUSED;
  return count;
}

Result<Survey> survey_drivers(Instance instance, std::chrono::nanoseconds limit) {
  Survey survey;
  survey.search = TOOL_TRY(DriverSearch::of(instance));
  survey.instance = std::move(instance);
  survey.failures = probe_all(survey.search, limit);
  return survey;
}

Result<Survey> survey_all(Instance instance, std::chrono::nanoseconds limit, Depth depth) {
  Survey survey = TOOL_TRY(survey_drivers(std::move(instance), limit));
  InstanceOptions sound{.flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS};
  for (size_t i = 0; i < survey.failures.size(); ++i) {
    const halyard_search_entry_t& entry = survey.search.entries()[i];
    if (is_accepted_driver(entry) && !survey.failures[i]) sound.driver_libraries.emplace_back(entry.path);
  }
  survey.instance = TOOL_TRY(Instance::create(sound));
  for (const halyard_driver_entry_t& found : TOOL_TRY(survey.instance.drivers())) {
    // If the first driver of a kind is broken, the kind has no driver, even if a later one works.
    const halyard_search_entry_t* const server = survey.search.serving(found.name);
    if (server && std::string_view(server->path) == found.library)
      take_driver(survey, static_cast<size_t>(server - survey.search.entries().data()), found, depth);
  }
  return survey;
}

namespace {

// Tries the driver that serves this kind of devices, if there is one.
Result<> try_driver(const Instance& instance, std::string_view kind, std::chrono::nanoseconds limit) {
  const DriverSearch search = TOOL_TRY(DriverSearch::of(instance));
  const halyard_search_entry_t* const entry = search.serving(kind);
  return entry ? probe_driver(entry->path, limit) : Result<>();
}

}  // namespace

Result<std::vector<DeviceInfo>> survey_devices(const Instance& instance, const std::string& driver,
                                               std::chrono::nanoseconds limit) {
  TOOL_TRY(try_driver(instance, driver, limit));
  return list(instance, driver);
}

Result<DeviceInfo> survey_device(const Instance& instance, const std::string& uri,
                                 std::chrono::nanoseconds limit) {
  const std::string kind = uri.substr(0, uri.find_first_of(":?"));
  TOOL_TRY(try_driver(instance, kind, limit));
  DeviceInfo info;
  info.uri = uri;
  TOOL_TRY(open(instance, info));
  info.uri = info.device.uri();
  for (const DeviceInfo& other : TOOL_TRY(list(instance, kind)))
    if (other.uri == info.uri) info.name = other.name;
  return info;
}

std::vector<Sharing> sharing(const std::vector<DeviceInfo>& devices) {
  std::vector<Sharing> pairs;
  for (const DeviceInfo& user : devices) {
    for (const DeviceInfo& owner : devices) {
      if (&user == &owner || user.failure || owner.failure) continue;
      const uint32_t how = owner.device.sharing_with(user.device);
      const bool imports = how == HALYARD_SHARING_HOST_MEMORY;
      pairs.push_back({&user, &owner, how, imports ? user.description.import_alignment : 0});
    }
  }
  return pairs;
}

}  // namespace halyard::tools
