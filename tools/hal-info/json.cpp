// One function for each kind of object; the writer sees to brackets, commas and indentation.
#include "json.h"

#include <algorithm>

#include "text.h"

namespace halyard::tools {

namespace {

class Json {
 public:
  template <typename Body>
  void object(Body&& body) {
    nest('{', '}', body);
  }
  template <typename Items, typename Body>
  void array(std::string_view name, const Items& items, Body&& body) {
    key(name);
    nest('[', ']', [&] {
      for (const auto& item : items) body(item);
    });
  }
  void key(std::string_view name) {
    separate();
    text_ += quoted(name) + ": ";
    after_key_ = true;
  }
  void text(std::string_view value) { value_of(quoted(value)); }
  void member(std::string_view name, std::string_view value) { key(name), text(value); }
  void member(std::string_view name, const char* value) { key(name), text(value); }
  void member(std::string_view name, uint64_t value) { key(name), value_of(std::to_string(value)); }
  void member(std::string_view name, int64_t value) { key(name), value_of(std::to_string(value)); }
  void member(std::string_view name, bool value) { key(name), value_of(value ? "true" : "false"); }
  void null(std::string_view name) { key(name), value_of("null"); }
  void member(std::string_view name, const std::optional<Failure>& failure) {
    if (failure) {
      member(name, failure->line());
    } else {
      null(name);
    }
  }
  std::string take() { return std::move(text_) + "\n"; }

 private:
  static std::string quoted(std::string_view value) {
    return Block<char>(halyard_json_quote(to_text(value))).get();
  }
  void separate() {
    if (!first_) text_ += ",";
    if (depth_ > 0) text_ += "\n" + std::string(depth_ * 2, ' ');
    first_ = false;
  }
  void value_of(std::string_view value) {
    if (!after_key_) separate();
    after_key_ = false;
    text_ += value;
  }
  template <typename Body>
  void nest(char open, char close, Body&& body) {
    value_of(std::string_view(&open, 1));
    ++depth_;
    first_ = true;
    body();
    --depth_;
    if (!first_) text_ += "\n" + std::string(depth_ * 2, ' ');
    first_ = false;
    text_ += close;
  }

  std::string text_;
  size_t depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

// What a library says of itself.
void note_members(Json& json, const halyard_search_entry_t& entry) {
  json.member("version", entry.version);
  json.member("abi_min", uint64_t{entry.abi_min});
  json.member("abi_max", uint64_t{entry.abi_max});
  if (entry.sanitizer) {
    json.member("sanitizer", halyard_sanitizer_name(entry.sanitizer));
  } else {
    json.null("sanitizer");
  }
}

void drivers_member(Json& json, const Survey& survey) {
  json.array("drivers", survey.drivers, [&](const DriverInfo& driver) {
    json.object([&] {
      json.member("name", driver.name);
      json.member("description", driver.description);
      const halyard_search_entry_t& entry = survey.search.entries()[driver.entry];
      json.member("library", entry.path);
      note_members(json, entry);
      json.member("device_count", uint64_t{driver.device_count});
      json.member("error", driver.failure);
    });
  });
  json.member("refused_files", uint64_t{survey.refused()});
}

void memory_member(Json& json, const std::optional<halyard_memory_use_t>& memory) {
  if (!memory) return json.null("memory");
  json.key("memory");
  json.object([&] {
    json.member("host_live", memory->host_live);
    json.member("host_peak", memory->host_peak);
    json.member("host_allocated", memory->host_allocated);
    json.member("host_freed", memory->host_freed);
    json.member("device_live", memory->device_live);
    json.member("device_peak", memory->device_peak);
    json.member("device_allocated", memory->device_allocated);
    json.member("device_freed", memory->device_freed);
  });
}

void device_object(Json& json, const DeviceInfo& device) {
  json.object([&] {
    json.member("uri", device.uri);
    json.member("name", device.name);
    json.member("error", device.failure);
    if (device.failure) return;
    const halyard_device_description_t& is = device.description;
    json.member("driver", is.driver);
    json.member("library", is.library);
    const auto name = [&](std::string text) {
      std::ranges::replace(text, ' ', '_');
      json.text(text);
    };
    json.array("capabilities", bit_names(is.capabilities, halyard_capability_name), name);
    json.array("operations", bit_names(is.operations, halyard_operation_name), name);
    json.member("queue_count", uint64_t{is.queue_count});
    json.member("memory_alignment", is.memory_alignment);
    json.member("maximum_allocation", is.maximum_allocation);
    json.member("import_alignment", is.import_alignment);
    memory_member(json, device.memory);
  });
}

void devices_members(Json& json, const std::vector<DeviceInfo>& devices) {
  json.array("devices", devices, [&](const DeviceInfo& device) { device_object(json, device); });
  json.array("sharing", sharing(devices), [&](const Sharing& pair) {
    json.object([&] {
      constexpr std::string_view kHow[] = {"none", "host_memory", "same_driver"};
      json.member("user", pair.user->uri);
      json.member("owner", pair.owner->uri);
      json.member("memory", pair.how < std::size(kHow) ? kHow[pair.how] : "unknown");
      json.member("alignment", pair.alignment);
    });
  });
}

template <typename Body>
std::string document(Body&& body) {
  Json json;
  json.object([&] { body(json); });
  return json.take();
}

}  // namespace

std::string survey_json(const Survey& survey) {
  return document([&](Json& json) {
    drivers_member(json, survey);
    devices_members(json, survey.devices);
  });
}

std::string drivers_json(const Survey& survey) {
  return document([&](Json& json) { drivers_member(json, survey); });
}

std::string devices_json(const std::vector<DeviceInfo>& devices) {
  return document([&](Json& json) { devices_members(json, devices); });
}

std::string explanation_json(const Survey& survey) {
  constexpr std::string_view kOrigins[] = {"embedder", "environment", "user", "installation"};
  return document([&](Json& json) {
    size_t at = 0;
    json.array("search", survey.search.entries(), [&](const halyard_search_entry_t& entry) {
      const std::optional<Failure>& failure = survey.failures[at++];
      json.object([&] {
        json.member("path", entry.path);
        json.member("origin", entry.origin < std::size(kOrigins) ? kOrigins[entry.origin] : "unknown");
        json.member("is_folder", entry.is_folder != 0);
        json.member("outcome", outcome_name(entry, failure.has_value()));
        if (failure) {
          json.member("reason", failure->line());
        } else if (*entry.reason) {
          json.member("reason", entry.reason);
        } else {
          json.null("reason");
        }
        if (entry.is_folder) return json.member("other_files", entry.other_files);
        const auto word = [&](const std::string& text) { json.text(text); };
        note_members(json, entry);
        json.array("kinds", split_list(entry.drivers), word);
        json.array("serves", split_list(failure ? "" : entry.serves), word);
      });
    });
  });
}

std::string grades_json(const DeviceInfo& device, const std::vector<FormatGrade>& grades) {
  return document([&](Json& json) {
    json.member("uri", device.uri);
    json.array("formats", grades, [&](const FormatGrade& grade) {
      json.object([&] {
        json.member("format", grade.format);
        if (grade.file.empty()) {
          json.null("file");
        } else {
          json.member("file", grade.file);
        }
        json.member("grade", fit_name(grade.fit));
        json.member("reason", grade.reason);
      });
    });
  });
}

std::string answer_json(const DeviceInfo& device, const Answer& answer) {
  return document([&](Json& json) {
    json.member("uri", device.uri);
    json.member("category", answer.category);
    json.member("key", answer.key);
    json.member("known", answer.known);
    if (answer.known) {
      json.member("value", answer.value);
    } else {
      json.null("value");
    }
  });
}

}  // namespace halyard::tools
