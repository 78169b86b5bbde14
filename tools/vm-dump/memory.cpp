// A level is a number of bytes, or an expression in the sizes of the inputs.
#include "memory.h"

#include <algorithm>
#include <vector>

#include "common/quantities.h"

namespace halyard::tools {

namespace {

constexpr size_t kMostRows = 30;  // of the allocations at a peak

std::string size_text(const Json& size) {
  if (!size.is_number_unsigned()) return size.get<std::string>() + " bytes";
  const auto bytes = size.get<uint64_t>();
  return bytes < 1024 ? fmt::format("{} bytes", bytes)
                      : fmt::format("{} ({} bytes)", format_size(bytes), bytes);
}

bool is_zero(const Json& size) { return size.is_number_unsigned() && size.get<uint64_t>() == 0; }

std::string made_by(const Json& allocation) {
  std::string text = allocation["source"].get<std::string>();
  if (const auto name = allocation.find("name"); name != allocation.end())
    text = (text == "argument" ? "" : text + " ") + name->get<std::string>();
  if (const auto constant = allocation.find("constant"); constant != allocation.end())
    text += fmt::format(" of rodata[{}]", constant->get<uint64_t>());
  if (const auto at = allocation.find("made_at"); at != allocation.end()) {
    text += " at " + (*at)["place"].get<std::string>();
    if (const auto source = at->find("source"); source != at->end()) {
      constexpr size_t kMost = 100;
      const std::string line = source->get<std::string>();
      text += " (" + (line.size() > kMost ? line.substr(0, kMost) + "..." : line) + ")";
    }
  }
  return text;
}

void add_alive(std::string& text, const Json& function, const Json& peak) {
  struct Row {
    const Json* allocation;
    uint64_t bytes;
    size_t position;  // in the analysis
  };
  std::vector<Row> rows;
  for (const Json& number : peak["alive"]) {
    const Json& allocation = function["allocations"][number.get<size_t>()];
    if (allocation.contains("in_place")) continue;
    const Json& bytes = allocation["bytes"];
    rows.push_back(
        {&allocation, bytes.is_number_unsigned() ? bytes.get<uint64_t>() : UINT64_MAX, rows.size()});
  }
  if (rows.empty()) return;
  // Expressions first, then the largest.
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.position < b.position;
  });
  text += "    alive at the peak\n";
  for (size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) {
    const Json& allocation = *rows[i].allocation;
    text += fmt::format("      {:>12}  {:<9}  {}\n",
                        allocation["bytes"].is_number_unsigned() ? fmt::format("{}", rows[i].bytes)
                                                                 : allocation["bytes"].get<std::string>(),
                        allocation["origin"].get<std::string>(), made_by(allocation));
  }
  if (rows.size() > kMostRows) text += fmt::format("      and {} smaller ones\n", rows.size() - kMostRows);
}

void add_function(std::string& text, const Json& function) {
  const std::string declaration = function["declaration"].get<std::string>();
  text += fmt::format("\nfunction {}\n", function["name"].get<std::string>());
  if (!declaration.empty()) text += fmt::format("  declared      {}\n", declaration);
  const Json& peaks = function["peaks"];
  if (peaks.size() > 1)
    text +=
        fmt::format("  peak          the highest of {} levels, by the sizes of the inputs\n", peaks.size());
  for (const Json& peak : peaks) {
    text += fmt::format("  {:<12}  {}\n", peaks.size() > 1 ? "level" : "peak", size_text(peak["bytes"]));
    for (const std::string_view part : {"arguments", "results", "transients", "state"})
      if (!is_zero(peak[part])) text += fmt::format("    {:<12}{}\n", part, size_text(peak[part]));
    add_alive(text, function, peak);
  }
  const size_t dispatches = static_cast<size_t>(
      std::ranges::count_if(function["steps"], [](const Json& step) { return step["kind"] == "dispatch"; }));
  text += fmt::format("  steps         {} ({} dispatches)\n", function["steps"].size(), dispatches);
  for (const auto& [symbol, origin] : function["unknowns"].items())
    text += fmt::format("  {} is {}\n", symbol, origin.get<std::string>());
  if (const std::string trouble = function["trouble"].get<std::string>(); !trouble.empty())
    text += fmt::format("  not complete: {}\n", trouble);
  for (const Json& note : function["notes"]) text += fmt::format("  note: {}\n", note.get<std::string>());
}

}  // namespace

std::string memory_text(const Json& analysis) {
  uint64_t parameters = 0;
  for (const Json& parameter : analysis["parameters"])
    if (parameter.contains("bytes")) parameters += parameter["bytes"].get<uint64_t>();
  uint64_t constants = 0;
  for (const Json& constant : analysis["constants"])
    if (constant["use"] == "imported") constants += constant["bytes"].get<uint64_t>();
  std::string text = fmt::format("module          {}\n", analysis["module"].get<std::string>());
  text += fmt::format("state           {}\n", size_text(analysis["state"]["bytes"]));
  text += fmt::format("constants       {}, used in place where the device can\n", size_text(constants));
  text += fmt::format("parameters      {} in {}, used in place where the device can\n", size_text(parameters),
                      analysis["parameters"].size());
  if (const Json& initializer = analysis["initializer"]; initializer.is_object()) {
    const Json& peaks = initializer["peaks"];
    if (!peaks.empty() && !is_zero(peaks[0]["bytes"])) add_function(text, initializer);
    if (const std::string trouble = initializer["trouble"].get<std::string>(); !trouble.empty())
      text += fmt::format("__init          not complete: {}\n", trouble);
  }
  for (const Json& function : analysis["functions"]) add_function(text, function);
  return text;
}

}  // namespace halyard::tools
