// Tables and blocks that fit the terminal.
#include "text.h"

#include <algorithm>

#include "common/colour.h"
#include "common/printable.h"
#include "common/quantities.h"
#include "common/table.h"

namespace halyard::tools {

namespace {

// Words after a title, wrapped.
std::string field(std::string_view title, const std::vector<std::string>& words) {
  constexpr size_t kColumn = 16;
  std::string text = fmt::format("  {:<{}}", title, kColumn - 2);
  size_t column = kColumn;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    if (i > 0 && column + 1 + word.size() > terminal_width()) {
      text += "\n" + std::string(kColumn, ' ');
      column = kColumn;
    } else if (i > 0) {
      text += ' ';
      ++column;
    }
    text += printable(word);
    column += word.size();
  }
  return text + "\n";
}

std::string size_text(uint64_t bytes) { return bytes == UINT64_MAX ? "no limit" : format_size(bytes); }

}  // namespace

std::vector<std::string> bit_names(uint64_t bits, const char* (*name)(uint32_t bit)) {
  std::vector<std::string> names;
  for (uint32_t bit = 0; bit < 64; ++bit) {
    if (!(bits >> bit & 1)) continue;
    const char* const known = name(bit);
    names.push_back(known ? known : fmt::format("bit {}", bit));
  }
  return names;
}

std::string compiler_text() {
  const Result<Compiler> found = check(find_compiler());
  if (found) return fmt::format("\ncompiler: {}, {}\n", printable(found->name), printable(found->path));
  return fmt::format("\ncompiler: none; {}\n", printable(found.error().line()));
}

std::string drivers_text(const Survey& survey) {
  std::vector<Row> rows;
  std::string failures;
  for (const DriverInfo& driver : survey.drivers) {
    const halyard_search_entry_t& entry = survey.search.entries()[driver.entry];
    rows.push_back({driver.name, entry.version, abi_text(entry.abi_min, entry.abi_max),
                    entry.sanitizer ? halyard_sanitizer_name(entry.sanitizer) : "none",
                    driver.failure ? "?" : std::to_string(driver.device_count), entry.path});
    if (driver.failure)
      failures += fmt::format("{}: {}\n", printable(driver.name), printable(driver.failure->line()));
  }
  if (rows.empty()) return "no drivers\n";
  return table({"DRIVER", "VERSION", "ABI", "SANITIZER", "DEVICES", "LIBRARY"}, std::move(rows)) + failures;
}

std::string device_text(const DeviceInfo& device) {
  std::string text = coloured(Colour::bold, printable(device.uri));
  if (!device.name.empty()) text += "  " + printable(device.name);
  text += "\n";
  if (device.failure)
    return text + fmt::format("  {} {}\n", coloured(Colour::red, "cannot be opened:"),
                              printable(device.failure->line()));
  const halyard_device_description_t& is = device.description;
  std::vector<std::string> capabilities = bit_names(is.capabilities, halyard_capability_name);
  if (capabilities.empty()) capabilities = {"none"};
  text += field("capabilities", capabilities);
  text += field("operations", bit_names(is.operations, halyard_operation_name));
  text += field("queues", {std::to_string(is.queue_count)});
  text += field("memory", {fmt::format("aligned to {}", format_size(is.memory_alignment)),
                           fmt::format("largest allocation {}", size_text(is.maximum_allocation))});
  text += field("import", {is.import_alignment
                               ? fmt::format("host memory aligned to {}", format_size(is.import_alignment))
                               : "none: host memory is copied"});
  return text;
}

std::string devices_text(const std::vector<DeviceInfo>& devices) {
  std::string text;
  for (const DeviceInfo& device : devices) text += (text.empty() ? "" : "\n") + device_text(device);
  return text.empty() ? "no devices\n" : text;
}

std::string sharing_text(const std::vector<DeviceInfo>& devices) {
  std::vector<Row> rows;
  for (const Sharing& pair : sharing(devices)) {
    const std::string how =
        pair.how == HALYARD_SHARING_SAME_DRIVER ? "its own memory (same driver)"
        : pair.how == HALYARD_SHARING_HOST_MEMORY
            ? fmt::format("imported host memory, aligned to {}", format_size(pair.alignment))
            : "a copy, which the host makes";
    rows.push_back({pair.user->uri, pair.owner->uri, how});
  }
  return rows.empty() ? "" : table({"DEVICE", "USES MEMORY OF", "AS"}, std::move(rows));
}

std::string grades_text(const std::vector<FormatGrade>& grades) {
  std::vector<Row> rows;
  for (const FormatGrade& grade : grades) {
    rows.push_back({grade.file.empty() ? grade.format : grade.format + "=" + grade.file,
                    std::string(fit_name(grade.fit)), grade.reason});
  }
  return table({"FORMAT", "GRADE", "REASON"}, std::move(rows));
}

std::string timing_text(const Timing& timing) {
  const auto microseconds = [](std::chrono::nanoseconds time) {
    return fmt::format("{:.1f} us", std::chrono::duration<double, std::micro>(time).count());
  };
  const auto copy = [&](std::chrono::nanoseconds time) {
    const double rate = static_cast<double>(Timing::kBytes) / std::chrono::duration<double>(time).count();
    return fmt::format("{} for {}, {}/s", microseconds(time), format_size(Timing::kBytes),
                       format_size(static_cast<uint64_t>(rate)));
  };
  return coloured(Colour::bold, printable(timing.uri)) + "\n" +
         field("opening", {microseconds(timing.opening)}) + field("answer", {microseconds(timing.answer)}) +
         field("to device", {copy(timing.to_device)}) + field("from device", {copy(timing.from_device)});
}

std::string refused_text(const Survey& survey) {
  const size_t count = survey.refused();
  if (count == 0) return "";
  return fmt::format("{} file{} refused; hal-info --explain says why\n", count,
                     count == 1 ? " was" : "s were");
}

}  // namespace halyard::tools
