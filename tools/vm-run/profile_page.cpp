// Analyses the module as vm-dump does, for the shapes of the call.
#include "profile_page.h"

#include <filesystem>

#include "common/analysis.h"
#include "common/files.h"
#include "common/module_file.h"
#include "common/page.h"
#include "common/page_diff.h"
#include "common/page_flags.h"
#include "common/profiled_calls.h"
#include "common/program_flags.h"

namespace halyard::tools {

namespace {

// The levels of a device from `begin` to `end`, at times since `begin`.
Json points_between(const Json& points, uint64_t begin, uint64_t end) {
  Json within = Json::array();
  uint64_t level = 0;
  for (const Json& point : points) {
    const auto time = point[0].get<uint64_t>();
    if (time > end) break;
    if (time >= begin) {
      if (within.empty()) within.push_back({0, level});
      within.push_back({time - begin, point[1]});
    }
    level = point[1].get<uint64_t>();
  }
  if (within.empty()) within.push_back({0, level});
  within.push_back({end - begin, level});
  return within;
}

Result<Json> timeline_of(const Program& program, const std::string& function, uint64_t begin, uint64_t end) {
  Json devices = Json::array();
  for (const Device& device : program.devices) {
    Json log = TOOL_TRY(parse_json(TOOL_TRY(check(device.memory_log()))));
    log["points"] = points_between(log["points"], begin, end);
    devices.push_back(std::move(log));
  }
  return Json{{"function", function}, {"devices", std::move(devices)}};
}

// Of all functions; the called one for its inputs, if the command line has their shapes.
Result<Json> analysis_of(std::span<const std::byte> module, const std::string& function,
                         const std::vector<std::string>& inputs) {
  Json all = TOOL_TRY(analyze_module(module, "", {}));
  if (inputs.empty()) return all;
  const Result<Json> one = analyze_module(module, function, inputs);
  if (!one || (*one)["functions"].empty()) return all;
  for (Json& each : all["functions"])
    if (each["name"] == function) each = (*one)["functions"][0];
  return all;
}

}  // namespace

Result<> write_profile_page(const Flags& flags, const Program& program, const std::string& function,
                            const ProfileReport& report, uint64_t begin_ns, uint64_t end_ns) {
  const std::string path = TOOL_TRY(module_paths(flags)).back();
  if (path == kStandard || path.ends_with(".so"))
    return fail(HALYARD_UNIMPLEMENTED, "{}={}: the page needs a file with bytecode, found '{}'",
                flag::profile, profile_page(flags), path);
  const ModuleFile module = TOOL_TRY(ModuleFile::open(path));
  PageContents contents;
  contents.file = std::filesystem::path(path).filename().string();
  contents.analysis = TOOL_TRY(analysis_of(module.bytes(), function, flags[flag::input]));
  contents.profile = profile_json(report);
  contents.timeline = TOOL_TRY(timeline_of(program, function, begin_ns, end_ns));
  if (flags.has(flag::diff)) contents.diff = TOOL_TRY(page_diff(flags[flag::diff]));
  return write_page(profile_page(flags), contents);
}

}  // namespace halyard::tools
