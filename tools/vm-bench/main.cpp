// vm-bench: measures a program's functions, and what it takes before they can be called. Flags, rows and exit
// codes are those of run-module-cli.md, section 7, so that a script written for iree-benchmark-module works
// here; docs/benchmarking.md says what each row means.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <regex>

#include "against.h"
#include "bench.h"
#include "benchmark_flags.h"
#include "common/program_flags.h"
#include "common/standard_streams.h"
#include "report.h"
#include "rows.h"

namespace halyard::tools {

namespace {

constexpr Flag kCallFlags[] = {
    {"batch", FlagKind::value, "N",
     "One call does the function's work N times: times are divided by N. Asynchronous functions are called N "
     "times before the\nlast is waited for.",
     "--batch=16"},
    {"batch_size", FlagKind::value, "N", "The same, as other runners call it.", "--batch_size=16"},
    {"batch_concurrency", FlagKind::value, "N",
     "How many calls of an asynchronous function are under way at once; each waits for the one N before it "
     "(1).",
     "--batch_concurrency=4"},
    {"threads", FlagKind::value, "N",
     "Calls from N threads at once, each in a context of its own, on the same modules and devices. The time "
     "is "
     "that of all\ncalls together.",
     "--threads=4"},
    {"time_unit", FlagKind::value, "ns|us|ms|s",
     "Unit of times. Left out: ms for calls, us for what repeats a dispatch and for all other rows.",
     "--time_unit=us"},
    {"print_statistics", FlagKind::toggle, "",
     "What each device has given of memory, on standard error after the rows.", "--print_statistics"},
};

constexpr Flag kAgainstFlags[] = {
    {"against", FlagKind::value, "COMMAND",
     "Measures calls in turns with another runner, which gets the same module, function, inputs and devices, "
     "and prints the\nratio of the medians. A program and flags for it alone, as a shell takes them; it must "
     "print Google Benchmark's JSON.",
     "--against=iree-benchmark-module"},
    {"rounds", FlagKind::value, "N", "How many turns each of the two has: 5, the default, or more.",
     "--rounds=9"},
};

constexpr FlagGroup kGroups[] = {
    {"Program", kProgramFlags},
    {"Loading and limits", kLoadingFlags},
    {"Devices", kDeviceFlags},
    {"From other runtimes", kForeignFlags},
    {"Calls", kCallFlags},
    {"Another runner", kAgainstFlags},
    {"Google Benchmark", kBenchmarkFlags},
};

constexpr ExitCode kExitCodes[] = {
    {0, "All rows were measured."},
    {1, "A call failed, as its row and standard error say; or a flag is not understood."},
    {kInterrupted, "Ctrl-C; what was measured before is printed."},
    {kTerminated, "SIGTERM; the same."},
    {kHungUp, "SIGHUP: the terminal is gone."},
    {HALYARD_NOT_FOUND, "And other numbers of statuses: nothing could be measured, as standard error says."},
};

constexpr ToolDescription kTool = {
    "vm-bench",
    "vm-bench --module=FILE [--function=NAME] [--device=URI] [--input=VALUE]... [--benchmark_...]",
    "Measures functions of a compiled module, and what comes before they can be called: loading, verifying, "
    "decoding, initialising, the first call. Without --function: every export without parameters.",
    kGroups,
    "  vm-bench --module=simple_mul.vmfb --device=local-sync --function=simple_mul --input=4xf32=1,2,3,4 "
    "--input=4xf32=2\n"
    "  vm-bench --module=simple_mul.vmfb --function=simple_mul --input=4xf32=1 --input=4xf32=2 "
    "--against=iree-benchmark-module\n"
    "  vm-bench --module=model.vmfb --benchmark_filter='^(load|init)$' --benchmark_format=json\n",
    kExitCodes};

// Those that --benchmark_filter leaves.
Result<> filter_rows(const Flags& flags, std::vector<std::unique_ptr<Row>>& rows) {
  std::string pattern = flags.value("benchmark_filter");
  if (pattern.empty() || pattern == "all") return {};
  const bool is_negative = pattern.starts_with('-');
  std::string names;
  for (const auto& row : rows) names += (names.empty() ? "" : ", ") + row->name();
  try {
    const std::regex regex(is_negative ? pattern.substr(1) : pattern);
    std::erase_if(rows,
                  [&](const auto& row) { return std::regex_search(row->name(), regex) == is_negative; });
  } catch (const std::regex_error& error) {
    return fail(HALYARD_INVALID_ARGUMENT, "--benchmark_filter={}: expected a regular expression: {}", pattern,
                error.what());
  }
  if (!rows.empty()) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "--benchmark_filter={}: no row has such a name; there are {}",
              pattern, names);
}

// Google Benchmark's own parsing of its flags. It keeps pointers into `texts`.
void initialize_library(std::vector<std::string>& texts) {
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
}

void add_context(const Bench& bench) {
  std::string devices;
  for (const auto& device : bench.program.devices)
    devices += (devices.empty() ? "" : " ") + std::string(halyard_device_uri(device.get()));
  benchmark::AddCustomContext("halyard", halyard_version());
  benchmark::AddCustomContext("devices", devices);
  benchmark::AddCustomContext("clock_ns", fmt::format("{:.1f}", bench.clock_cost * 1e9));
}

// One row after the other, so that each is printed when it is known; all of them in one run where their
// repetitions are to be mixed.
void measure(Bench& bench, std::vector<std::unique_ptr<Row>> rows, bool is_mixed, Report& report) {
  for (size_t i = 0; i < rows.size() && !bench.stop.asked_for(); ++i) {
    bench.progress.show(i + 1, rows.size(), rows[i]->name());
    const bool applies = rows[i]->prepare();
    if (bench.stop.asked_for()) return;
    if (applies) rows[i]->enlist();
    if (is_mixed && i + 1 < rows.size()) continue;
    report.set_family(is_mixed ? 0 : static_cast<int64_t>(i));
    if (is_mixed || applies) benchmark::RunSpecifiedBenchmarks(&report, "all");
    benchmark::ClearRegisteredBenchmarks();
    if (!is_mixed) rows[i].reset();  // and what it holds
  }
}

Result<int> bench_and_report(const Flags& flags, Bench& bench) {
  bench.options = TOOL_TRY(benchmark_options(flags));
  if (flags.has("against")) TOOL_TRY(check_against(flags));
  TOOL_TRY(set_up(flags, bench));
  std::vector<std::unique_ptr<Row>> rows = make_rows(bench);
  TOOL_TRY(filter_rows(flags, rows));
  if (flags.on("benchmark_list_tests")) {
    for (const auto& row : rows) fmt::print("{}\n", row->name());
    return 0;
  }
  initialize_library(bench.options.handed_on);
  add_context(bench);
  size_t name_width = 0;
  for (const auto& row : rows) name_width = std::max(name_width, row->name().size());
  if (flags.has("benchmark_repetitions")) name_width += std::string_view("_median").size();
  const std::unique_ptr<Report> report = TOOL_TRY(Report::make(bench.options, name_width, bench.progress));
  if (flags.has("against")) {
    Result<> done = compare(flags, bench, *report);
    if (!done && !bench.stop.asked_for() && bench.failures.empty())
      return std::unexpected(std::move(done).error());
  } else {
    measure(bench, std::move(rows), flags.on("benchmark_enable_random_interleaving"), *report);
    TOOL_TRY(report->finish());
  }
  if (flags.on("print_statistics")) {
    std::fflush(stdout);
    TOOL_TRY(print_statistics(bench.program));
  }
  if (bench.program.trace) TOOL_TRY(check(halyard_trace_finish(bench.program.trace.get())));
  return 0;
}

Result<int> vm_bench(const Flags& flags) {
  Bench bench;
  Result<int> done = bench_and_report(flags, bench);
  if (!done) {
    Failure failure = std::move(done).error();
    if (failure.exit_code == 1) failure.exit_code = static_cast<int>(failure.code);
    return std::unexpected(std::move(failure));
  }
  if (bench.stop.asked_for()) {
    std::fflush(stdout);
    print_error("vm-bench: stopped by {}; what was measured by then is above\n",
                bench.stop.interrupt.cause());
    return bench.stop.interrupt.exit_code();
  }
  if (!bench.failures.empty())
    return std::unexpected(bench.failures.front());  // the others stand in their rows
  return done;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_bench);
}
