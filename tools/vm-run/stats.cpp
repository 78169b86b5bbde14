// Prints three tables: phases, memory, objects.
#include "stats.h"

#include <algorithm>

#include "common/brief.h"
#include "common/json.h"
#include "common/printable.h"
#include "common/quantities.h"
#include "common/standard_streams.h"

namespace halyard::tools {

namespace {

std::string time_text(std::chrono::nanoseconds time) {
  const auto count = static_cast<double>(time.count());
  if (count < 1e6) return fmt::format("{:.1f} us", count / 1e3);
  if (count < 1e9) return fmt::format("{:.2f} ms", count / 1e6);
  return fmt::format("{:.2f} s", count / 1e9);
}

void print_phases(const Program& program) {
  print_error("time\n");
  for (const Program::PhaseTime& phase : *program.phases)
    print_error("  {:<16} {:>12}\n", phase.name, time_text(phase.time));
}

Result<> print_compiled() {
  const halyard_compiler_stats_t stats = TOOL_TRY(compiler_stats());
  if (stats.functions + stats.refused == 0) return {};
  print_error(
      "compiled\n  {:<16} {:>12}\n  {:<16} {:>12}\n  {:<16} {:>12}\n  {:<16} {:>12}\n  {:<16} {:>12}\n",
      "functions", stats.functions, "from the cache", stats.cached, "refused", stats.refused, "time",
      time_text(std::chrono::nanoseconds(stats.compile_ns)), "objects", format_size(stats.object_bytes));
  return {};
}

Result<> print_memory(const Program& program) {
  print_error("memory {:>21} {:>12} {:>12}\n", "peak", "allocated", "live");
  for (const auto& device : program.devices) {
    const halyard_memory_use_t use = TOOL_TRY(device.memory());
    const std::string uri = printable(device.uri());
    const auto row = [&](std::string_view where, uint64_t peak, uint64_t allocated, uint64_t live) {
      if (peak == 0) return;
      print_error("  {:<13} {:>12} {:>12} {:>12}\n", uri + std::string(where), format_size(peak),
                  format_size(allocated), format_size(live));
    };
    row("", use.host_peak, use.host_allocated, use.host_live);
    row(" device", use.device_peak, use.device_allocated, use.device_live);
  }
  return {};
}

constexpr size_t kMostRows = 20;  // of a list

// The bytes that programs held on a device, from each change on. Of many changes, the highest level of each
// of kMostRows equal periods.
void print_timeline(std::string_view uri, const Json& points) {
  if (points.empty()) return;
  const auto time_of = [&](size_t i) { return points[i][0].get<uint64_t>(); };
  const auto bytes_of = [&](size_t i) { return points[i][1].get<uint64_t>(); };
  const uint64_t begin = time_of(0);
  const auto row = [&](uint64_t after, uint64_t bytes) {
    print_error("  {:>14} {:>14}\n", time_text(std::chrono::nanoseconds(after)), bytes);
  };
  const bool is_short = points.size() <= kMostRows;
  print_error(
      "memory of {} over time{}\n", uri,
      is_short ? std::string() : fmt::format(", the highest of {} changes in each period", points.size()));
  if (is_short) {
    for (size_t i = 0; i < points.size(); ++i) row(time_of(i) - begin, bytes_of(i));
    return;
  }
  const uint64_t length = (time_of(points.size() - 1) - begin) / kMostRows + 1;
  uint64_t level = 0;
  for (size_t i = 0, period = 0; period < kMostRows; ++period) {
    uint64_t highest = level;
    for (; i < points.size() && time_of(i) - begin < (period + 1) * length; ++i) {
      level = bytes_of(i);
      highest = std::max(highest, level);
    }
    row(period * length, highest);
  }
}

// What was alive at the peak of a device, and who had made it.
Result<> print_log(const Device& device) {
  const Json log = TOOL_TRY(parse_json(TOOL_TRY(check(device.memory_log()))));
  print_timeline(printable(device.uri()), log["points"]);
  const Json& alive = log["alive"];
  if (alive.empty()) return {};
  print_error("alive at the peak of {}, {}\n", printable(device.uri()),
              format_size(log["peak_bytes"].get<uint64_t>()));
  for (size_t i = 0; i < std::min(alive.size(), kMostRows); ++i) {
    const Json& each = alive[i];
    const auto count = each["count"].get<uint64_t>();
    print_error("  {:>13}{} {}\n", each["bytes"].get<uint64_t>(),
                count > 1 ? fmt::format(" x {}", count) : std::string(),
                printable(brief(each["made_by"].get<std::string>())));
  }
  if (alive.size() > kMostRows) print_error("  and {} more\n", alive.size() - kMostRows);
  return {};
}

void print_counts(std::string_view whose, const Block<halyard_object_count_t>& counts) {
  if (counts.empty()) return;
  print_error("  {}\n", whose);
  for (const halyard_object_count_t& count : counts)
    print_error("    {:<18} {:>10} {:>12}\n", count.type, count.made, count.live);
}

Result<> print_objects(const Program& program) {
  print_error("objects {:>26} {:>12}\n", "created", "remaining");
  print_counts("modules", TOOL_TRY(program.instance.objects()));
  for (const auto& device : program.devices)
    print_counts(printable(device.uri()), TOOL_TRY(device.objects()));
  return {};
}

}  // namespace

Result<> print_stats(Program& program) {
  program.context = {};
  program.modules.clear();
  print_phases(program);
  TOOL_TRY(print_compiled());
  if (!program.devices.empty()) TOOL_TRY(print_memory(program));
  for (const auto& device : program.devices) TOOL_TRY(print_log(device));
  return print_objects(program);
}

}  // namespace halyard::tools
