// Sums up the tensors of each step.
#include "common/page_diff.h"

#include <algorithm>
#include <limits>

#include "common/files.h"

namespace halyard::tools {

namespace {

// Numbers of the report may be "inf".
double number_of(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::infinity();
}

Json step_of(const Json& difference) {
  double absolute = 0;
  double relative = 0;
  double ulps = 0;
  uint64_t elements = 0;
  bool is_comparable = true;
  for (const Json& tensor : difference.at("tensors")) {
    is_comparable = is_comparable && tensor.at("comparable").get<bool>();
    if (!tensor.at("comparable").get<bool>()) continue;
    absolute = std::max(absolute, number_of(tensor.at("largest_absolute")));
    relative = std::max(relative, number_of(tensor.at("largest_relative")));
    ulps = std::max(ulps, number_of(tensor.at("largest_ulps")));
    elements += tensor.at("different").get<uint64_t>();
  }
  return {{"name", difference.at("name_a")},   {"operation", difference.at("operation")},
          {"place", difference.at("place_a")}, {"occurrence", difference.at("occurrence")},
          {"beyond", difference.at("beyond")}, {"comparable", is_comparable},
          {"max_abs", json_number(absolute)},  {"max_rel", json_number(relative)},
          {"max_ulps", json_number(ulps)},     {"elements", elements}};
}

}  // namespace

Result<Json> page_diff(const std::string& path) {
  const FileContents file = TOOL_TRY(FileContents::open(path));
  const Result<Json> report = parse_json(file.text());
  const auto wrong = [&](std::string_view found) {
    return fail(HALYARD_INVALID_ARGUMENT,
                "'{}': expected a report that vm-diff --json={} wrote, found {}; run vm-diff again", path,
                path, found);
  };
  if (!report) return wrong("no JSON");
  try {
    Json steps = Json::array();
    for (const Json& difference : report->at("differences")) steps.push_back(step_of(difference));
    const Json& first = report->at("first_beyond");
    return Json{{"function", report->at("function")},
                {"a", report->at("a")},
                {"b", report->at("b")},
                {"outcome", report->at("outcome")},
                {"compared", report->at("compared")},
                {"first_beyond", first},
                {"steps", std::move(steps)}};
  } catch (const Json::exception& error) {
    return wrong(fmt::format("JSON of another form ({})", json_reason(error)));
  }
}

}  // namespace halyard::tools
