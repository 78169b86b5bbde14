// vm-bench: measures a program's functions, and the steps before a call. Flags, rows and exit codes are
// specified by run-module-cli.md, section 7, so scripts for iree-benchmark-module work. docs/benchmarking.md
// describes each row.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <regex>

#include "against.h"
#include "bench.h"
#include "bench_flags.h"
#include "benchmark_flags.h"
#include "common/profiled_calls.h"
#include "common/program_flags.h"
#include "common/ranks.h"
#include "common/standard_streams.h"
#include "common/tool.h"
#include "report.h"
#include "rows.h"

namespace halyard::tools {

namespace {

constexpr const Flag* kCallFlags[] = {&flag::batch,   &flag::batch_size, &flag::batch_concurrency,
                                      &flag::threads, &flag::time_unit,  &flag::print_statistics,
                                      &flag::profile};
constexpr const Flag* kAgainstFlags[] = {&flag::against, &flag::rounds};

constexpr FlagGroup kGroups[] = {
    {"Program", kProgramFlags},
    {"Loading and limits", kLoadingFlags},
    {"Devices", kDeviceFlags},
    {"Ranks", kRankFlags},
    {"From other runtimes", kForeignFlags},
    {"Calls", kCallFlags},
    {"Another runner", kAgainstFlags},
    {"Google Benchmark", kBenchmarkFlags},
};

constexpr ExitCode kExitCodes[] = {
    {0, "All rows were measured."},
    {1, "A call failed (its row and standard error have the reason), or a flag is wrong."},
    {kInterrupted, "Stopped by Ctrl-C; the rows that were measured before are printed."},
    {kTerminated, "Stopped by SIGTERM, in the same way."},
    {kHungUp, "Stopped by SIGHUP (the terminal was closed), in the same way."},
    {HALYARD_NOT_FOUND,
     "This and other status codes: nothing could be measured; standard error has the reason."},
};

constexpr ToolDescription kTool = {
    "vm-bench",
    "vm-bench --module=FILE [--function=NAME] [--device=URI] [--input=VALUE]... [--benchmark_...]",
    "Measures functions of a compiled module, and the steps before they can be called: loading, verifying, "
    "decoding, initializing, the first call. Without --function: every export without parameters.",
    kGroups,
    "  vm-bench --module=simple_mul.vmfb --device=local-sync --function=simple_mul --input=4xf32=1,2,3,4 "
    "--input=4xf32=2\n  vm-bench --module=simple_mul.vmfb --function=simple_mul --input=4xf32=1 "
    "--input=4xf32=2 --against=iree-benchmark-module\n  vm-bench --module=model.vmfb "
    "--benchmark_filter='^(load|init)$' --benchmark_format=json\n",
    kExitCodes};

// Removes the rows that --benchmark_filter excludes.
Result<> filter_rows(const Flags& flags, std::vector<std::unique_ptr<Row>>& rows) {
  std::string pattern = flags[flag::benchmark_filter];
  if (pattern.empty() || pattern == "all") return {};
  const bool is_negative = pattern.starts_with('-');
  std::string names;
  for (const auto& row : rows) names += (names.empty() ? "" : ", ") + row->name();
  try {
    const std::regex regex(is_negative ? pattern.substr(1) : pattern);
    std::erase_if(rows,
                  [&](const auto& row) { return std::regex_search(row->name(), regex) == is_negative; });
  } catch (const std::regex_error& error) {
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected a regular expression: {}", flag::benchmark_filter,
                pattern, error.what());
  }
  if (!rows.empty()) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "{}={}: no row matches; the rows are {}", flag::benchmark_filter,
              pattern, names);
}

// Lets Google Benchmark parse its flags. It keeps pointers to `texts`.
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
  if (bench.agreement) benchmark::AddCustomContext("ranks", std::to_string(bench.agreement->count()));
  benchmark::AddCustomContext("clock_ns", fmt::format("{:.1f}", bench.clock_cost * 1e9));
}

// With several ranks, this process must end after a failure, because the other ranks may wait for it.
bool must_end(const Bench& bench) { return bench.agreement && !bench.failures.empty(); }

// Measures the rows one by one, so that each is printed at once; in a single run if their repetitions are to
// be mixed.
void measure(Bench& bench, std::vector<std::unique_ptr<Row>> rows, bool is_mixed, Report& report) {
  for (size_t i = 0; i < rows.size() && !bench.stop.asked_for(); ++i) {
    if (bench.reports()) bench.progress.show(i + 1, rows.size(), rows[i]->name());
    const bool applies = rows[i]->prepare();
    if (bench.stop.asked_for() || must_end(bench)) return;
    if (applies) rows[i]->enlist();
    if (is_mixed && i + 1 < rows.size()) continue;
    report.set_family(is_mixed ? 0 : static_cast<int64_t>(i));
    if (is_mixed || applies) benchmark::RunSpecifiedBenchmarks(&report, "all");
    benchmark::ClearRegisteredBenchmarks();
    if (must_end(bench)) return;
    if (!is_mixed) rows[i].reset();  // frees its context and calls
  }
}

Result<int> bench_and_report(const Flags& flags, Bench& bench) {
  bench.options = TOOL_TRY(benchmark_options(flags));
  if (flags.has(flag::against)) TOOL_TRY(check_against(flags));
  TOOL_TRY(set_up(flags, bench));
  std::vector<std::unique_ptr<Row>> rows = make_rows(bench);
  TOOL_TRY(filter_rows(flags, rows));
  if (flags[flag::benchmark_list_tests]) {
    for (const auto& row : rows)
      if (bench.reports()) fmt::print("{}\n", row->name());
    return 0;
  }
  initialize_library(bench.options.handed_on);
  add_context(bench);
  size_t name_width = 0;
  for (const auto& row : rows) name_width = std::max(name_width, row->name().size());
  if (flags.has(flag::benchmark_repetitions)) name_width += std::string_view("_median").size();
  const std::unique_ptr<Report> report = TOOL_TRY(Report::make(bench, name_width));
  if (flags.has(flag::against)) {
    Result<> done = compare(flags, bench, *report);
    if (!done && !bench.stop.asked_for() && bench.failures.empty())
      return std::unexpected(std::move(done).error());
  } else {
    measure(bench, std::move(rows), flags[flag::benchmark_enable_random_interleaving], *report);
    if (must_end(bench)) return std::unexpected(bench.failures.front());
    TOOL_TRY(report->finish());
    if (bench.reports() && bench.options.format != Format::json)
      for (const ProfileReport& profile : bench.profiles)
        print_error("\n{}", profile_table(profile, profile_detail(flags)));
  }
  if (flags[flag::print_statistics]) {
    std::fflush(stdout);
    TOOL_TRY(print_statistics(bench.program));
  }
  if (bench.program.trace) TOOL_TRY(bench.program.trace.finish());
  return 0;
}

Result<int> vm_bench(const Flags& flags) {
  if (!profile_page(flags).empty())
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: vm-run writes pages; vm-bench prints tables", flag::profile,
                profile_page(flags));
  Bench bench;
  Result<int> done = bench_and_report(flags, bench);
  if (!done) {
    Failure failure = std::move(done).error();
    if (failure.exit_code == 1) failure.exit_code = static_cast<int>(failure.code);
    return std::unexpected(std::move(failure));
  }
  if (bench.stop.asked_for()) {
    std::fflush(stdout);
    print_error("vm-bench: stopped by {}; the rows that were measured before are above\n",
                bench.stop.interrupt.cause());
    return bench.stop.interrupt.exit_code();
  }
  if (!bench.failures.empty())
    return std::unexpected(bench.failures.front());  // the rows report the other failures
  return done;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_bench);
}
