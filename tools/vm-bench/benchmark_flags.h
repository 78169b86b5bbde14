// The flags of Google Benchmark: in --help like all others, checked here, and handed on to the library.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

inline constexpr Flag kBenchmarkFlags[] = {
    {"benchmark_filter", FlagKind::value, "REGEX",
     "Only rows whose name has a match; with a '-' before it, only the others. "
     "--benchmark_list_tests prints the names.",
     "--benchmark_filter=^BM_"},
    {"benchmark_list_tests", FlagKind::toggle, "", "Prints the names of the rows and exits.",
     "--benchmark_list_tests"},
    {"benchmark_min_time", FlagKind::value, "TIME",
     "How long each row is measured: 0.5s (the default), or how often: 100x.", "--benchmark_min_time=2s"},
    {"benchmark_min_warmup_time", FlagKind::value, "SECONDS",
     "How long calls go on before those that are measured, after the few that always do.",
     "--benchmark_min_warmup_time=1"},
    {"benchmark_repetitions", FlagKind::value, "N",
     "Measures every row so often and adds mean, median, standard deviation and variation of all.",
     "--benchmark_repetitions=7"},
    {"benchmark_enable_random_interleaving", FlagKind::toggle, "",
     "Repetitions of all rows in random order, so that what disturbs meets all rows alike.",
     "--benchmark_enable_random_interleaving"},
    {"benchmark_report_aggregates_only", FlagKind::toggle, "",
     "Of repetitions, only the rows with mean, median and so on.", "--benchmark_report_aggregates_only"},
    {"benchmark_display_aggregates_only", FlagKind::toggle, "",
     "The same on standard output alone: the file of --benchmark_out has all rows.",
     "--benchmark_display_aggregates_only"},
    {"benchmark_format", FlagKind::value, "console|json|csv", "What is printed on standard output.",
     "--benchmark_format=json"},
    {"benchmark_out", FlagKind::value, "FILE", "Writes the rows to a file, too.",
     "--benchmark_out=results.json"},
    {"benchmark_out_format", FlagKind::value, "json|console|csv", "The form of that file.",
     "--benchmark_out_format=csv"},
    {"benchmark_color", FlagKind::value, "auto|true|false",
     "Colours in the table; auto, the default: on a terminal.", "--benchmark_color=false"},
    {"benchmark_counters_tabular", FlagKind::toggle, "", "Counters in columns of their own.",
     "--benchmark_counters_tabular"},
    {"benchmark_context", FlagKind::list, "KEY=VALUE,...", "Texts that go with the results.",
     "--benchmark_context=machine=lab3"},
    {"benchmark_time_unit", FlagKind::value, "ns|us|ms|s", "As --time_unit.", "--benchmark_time_unit=us"},
};

enum class Format { console, json, csv };

// What of them this tool does itself.
struct BenchmarkOptions {
  Format format = Format::console;
  std::string out;  // a file, or empty
  Format out_format = Format::json;
  double min_time = 0;      // seconds, or
  uint64_t iterations = 0;  // so often; 0: by time
  bool display_aggregates_only = false;
  std::optional<benchmark::TimeUnit> unit;  // where a flag says so
  std::vector<std::string> handed_on;       // what Google Benchmark's own main would have got
};

// INVALID_ARGUMENT names the flag.
Result<BenchmarkOptions> benchmark_options(const Flags& flags);

}  // namespace halyard::tools
