// Measures the peaks after the calls, so that they do not disturb them.
#include "common/profiled_calls.h"

#include <algorithm>
#include <utility>

#include "common/program_flags.h"

namespace halyard::tools {

namespace {

// Of the device that runs a dispatch on most threads of this process.
unsigned most_threads(const Program& program) {
  int64_t most = 1;
  for (const Device& device : program.devices)
    if (const auto threads = check(device.query("hal.dispatch", "concurrency")); threads && *threads)
      most = std::max(most, **threads);
  return static_cast<unsigned>(std::min<int64_t>(most, 1024));
}

}  // namespace

ProfiledCalls::~ProfiledCalls() {
  if (is_observing_) static_cast<void>(check(program_.trace.end_observation()));
}

Result<> ProfiledCalls::begin() {
  compiled_before_ = TOOL_TRY(compiler_stats());
  is_observing_ = true;
  return profile_.begin(program_.trace);
}

Result<ProfileReport> ProfiledCalls::end(const Flags& flags, std::string function, uint64_t calls) {
  ProfileReport report;
  is_observing_ = false;
  report.sums = TOOL_TRY(profile_.end(program_.trace));
  report.function = std::move(function);
  report.calls = calls;
  const halyard_compiler_stats_t compiled = TOOL_TRY(compiler_stats());
  report.compiled = compiled.functions - compiled_before_.functions;
  report.compile_ns = static_cast<double>(compiled.compile_ns - compiled_before_.compile_ns);
  if (flags[flag::jit] != JitMode::off)
    if (const auto compiler = check(find_compiler()); !compiler) report.no_compiler = compiler.error().line();
  report.peaks = measure_peaks(most_threads(program_));
  return report;
}

std::string profile_page(const Flags& flags) {
  const std::string value = flags[flag::profile].value_or("");
  return value.ends_with(".html") ? value : std::string();
}

ProfileDetail profile_detail(const Flags& flags) {
  return flags[flag::profile] == "all" ? ProfileDetail::all : ProfileDetail::table;
}

}  // namespace halyard::tools
