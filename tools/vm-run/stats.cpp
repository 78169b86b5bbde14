// Prints three tables: phases, memory, objects.
#include "stats.h"

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
  halyard_compiler_stats_t stats = {};
  stats.struct_size = sizeof stats;
  TOOL_TRY(check(halyard_compiler_stats(&stats)));
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
    halyard_memory_use_t use = {};
    use.struct_size = sizeof use;
    TOOL_TRY(check(halyard_device_memory(device.get(), &use)));
    const std::string uri = printable(halyard_device_uri(device.get()));
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

// `get`: a function of the C ABI that counts objects.
template <typename Handle>
Result<> print_counts(std::string_view whose, Handle handle,
                      halyard_status_t (*get)(Handle, halyard_object_count_t**, size_t*)) {
  halyard_object_count_t* entries = nullptr;
  size_t count = 0;
  TOOL_TRY(check(get(handle, &entries, &count)));
  const Block<halyard_object_count_t> owned(entries);
  if (count == 0) return {};
  print_error("  {}\n", whose);
  for (size_t i = 0; i < count; ++i)
    print_error("    {:<18} {:>10} {:>12}\n", entries[i].type, entries[i].made, entries[i].live);
  return {};
}

Result<> print_objects(const Program& program) {
  print_error("objects {:>26} {:>12}\n", "made", "still there");
  TOOL_TRY(print_counts("modules", program.instance.get(), halyard_instance_objects));
  for (const auto& device : program.devices)
    TOOL_TRY(print_counts(printable(halyard_device_uri(device.get())), device.get(), halyard_device_objects));
  return {};
}

}  // namespace

Result<> print_stats(Program& program) {
  program.context = {};
  program.modules.clear();
  print_phases(program);
  TOOL_TRY(print_compiled());
  if (!program.devices.empty()) TOOL_TRY(print_memory(program));
  return print_objects(program);
}

}  // namespace halyard::tools
