// One function for each kind of object.
#include "json.h"

#include <algorithm>

#include "common/json.h"
#include "text.h"

namespace halyard::tools {

namespace {

Json error_of(const std::optional<Failure>& failure) { return failure ? Json(failure->line()) : Json(); }

// Adds the contents of a library's note.
void add_note(Json& object, const halyard_search_entry_t& entry) {
  object["version"] = entry.version;
  object["abi_min"] = entry.abi_min;
  object["abi_max"] = entry.abi_max;
  object["sanitizer"] = entry.sanitizer ? Json(halyard_sanitizer_name(entry.sanitizer)) : Json();
}

void add_drivers(Json& document, const Survey& survey) {
  Json& drivers = document["drivers"] = Json::array();
  for (const DriverInfo& driver : survey.drivers) {
    const halyard_search_entry_t& entry = survey.search.entries()[driver.entry];
    Json object = {{"name", driver.name}, {"description", driver.description}, {"library", entry.path}};
    add_note(object, entry);
    object["device_count"] = driver.device_count;
    object["error"] = error_of(driver.failure);
    drivers.push_back(std::move(object));
  }
  document["refused_files"] = survey.refused();
}

Json memory_of(const std::optional<halyard_memory_use_t>& memory) {
  if (!memory) return nullptr;
  return {{"host_live", memory->host_live},
          {"host_peak", memory->host_peak},
          {"host_allocated", memory->host_allocated},
          {"host_freed", memory->host_freed},
          {"device_live", memory->device_live},
          {"device_peak", memory->device_peak},
          {"device_allocated", memory->device_allocated},
          {"device_freed", memory->device_freed}};
}

// A word for each set bit: "unified_memory".
Json words_of(uint64_t bits, const char* (*name)(uint32_t bit)) {
  std::vector<std::string> words = bit_names(bits, name);
  for (std::string& word : words) std::ranges::replace(word, ' ', '_');
  return words;
}

Json device_object(const DeviceInfo& device) {
  Json object = {{"uri", device.uri}, {"name", device.name}, {"error", error_of(device.failure)}};
  if (device.failure) return object;
  const halyard_device_description_t& is = device.description;
  object["driver"] = is.driver;
  object["library"] = is.library;
  object["capabilities"] = words_of(is.capabilities, halyard_capability_name);
  object["operations"] = words_of(is.operations, halyard_operation_name);
  object["queue_count"] = is.queue_count;
  object["memory_alignment"] = is.memory_alignment;
  object["maximum_allocation"] = is.maximum_allocation;
  object["import_alignment"] = is.import_alignment;
  object["memory"] = memory_of(device.memory);
  return object;
}

void add_devices(Json& document, const std::vector<DeviceInfo>& devices) {
  Json& list = document["devices"] = Json::array();
  for (const DeviceInfo& device : devices) list.push_back(device_object(device));
  Json& pairs = document["sharing"] = Json::array();
  for (const Sharing& pair : sharing(devices)) {
    constexpr std::string_view kHow[] = {"none", "host_memory", "same_driver"};
    pairs.push_back({{"user", pair.user->uri},
                     {"owner", pair.owner->uri},
                     {"memory", pair.how < std::size(kHow) ? kHow[pair.how] : "unknown"},
                     {"alignment", pair.alignment}});
  }
}

}  // namespace

std::string survey_json(const Survey& survey) {
  Json document;
  add_drivers(document, survey);
  add_devices(document, survey.devices);
  return json_document(document);
}

std::string drivers_json(const Survey& survey) {
  Json document;
  add_drivers(document, survey);
  return json_document(document);
}

std::string devices_json(const std::vector<DeviceInfo>& devices) {
  Json document;
  add_devices(document, devices);
  return json_document(document);
}

std::string explanation_json(const Survey& survey) {
  constexpr std::string_view kOrigins[] = {"embedder", "environment", "user", "installation"};
  Json search = Json::array();
  size_t at = 0;
  for (const halyard_search_entry_t& entry : survey.search.entries()) {
    const std::optional<Failure>& failure = survey.failures[at++];
    Json object = {{"path", entry.path},
                   {"origin", entry.origin < std::size(kOrigins) ? kOrigins[entry.origin] : "unknown"},
                   {"is_folder", entry.is_folder != 0},
                   {"outcome", outcome_name(entry, failure.has_value())}};
    object["reason"] = failure ? Json(failure->line()) : *entry.reason ? Json(entry.reason) : Json();
    if (entry.is_folder) {
      object["other_files"] = entry.other_files;
    } else {
      add_note(object, entry);
      object["kinds"] = split_list(entry.drivers);
      object["serves"] = split_list(failure ? "" : entry.serves);
    }
    search.push_back(std::move(object));
  }
  return json_document({{"search", std::move(search)}});
}

std::string grades_json(const DeviceInfo& device, const std::vector<FormatGrade>& grades) {
  Json formats = Json::array();
  for (const FormatGrade& grade : grades)
    formats.push_back({{"format", grade.format},
                       {"file", grade.file.empty() ? Json() : Json(grade.file)},
                       {"grade", fit_name(grade.fit)},
                       {"reason", grade.reason}});
  return json_document({{"uri", device.uri}, {"formats", std::move(formats)}});
}

std::string timing_json(const Timing& timing) {
  return json_document({{"uri", timing.uri},
                        {"opening_ns", timing.opening.count()},
                        {"answer_ns", timing.answer.count()},
                        {"copied_bytes", Timing::kBytes},
                        {"to_device_ns", timing.to_device.count()},
                        {"from_device_ns", timing.from_device.count()}});
}

std::string answer_json(const DeviceInfo& device, const Answer& answer) {
  return json_document({{"uri", device.uri},
                        {"category", answer.category},
                        {"key", answer.key},
                        {"known", answer.known},
                        {"value", answer.known ? Json(answer.value) : Json()}});
}

}  // namespace halyard::tools
