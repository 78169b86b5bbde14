// The flags of Google Benchmark: listed in --help, checked here, and passed to the library.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

enum class Format { console, json, csv };

namespace flag {

inline constexpr Text benchmark_filter = {
    "benchmark_filter", "REGEX",
    "Measures only rows whose names match the regular expression; with a leading "
    "'-', only the other rows. --benchmark_list_tests prints the names.",
    "--benchmark_filter=^BM_"};
inline constexpr Toggle benchmark_list_tests = {
    "benchmark_list_tests", "Prints the names of the rows and exits.", "--benchmark_list_tests"};
inline constexpr Text benchmark_min_time = {
    "benchmark_min_time", "TIME",
    "The time for which each row is measured: 0.5s (the default); or the number of calls: 100x.",
    "--benchmark_min_time=2s"};
inline constexpr Text benchmark_min_warmup_time = {
    "benchmark_min_warmup_time", "SECONDS",
    "The time of calls before the measurement, in addition to the few that are always made.",
    "--benchmark_min_warmup_time=1"};
inline constexpr Text benchmark_repetitions = {
    "benchmark_repetitions", "N",
    "Measures every row N times and adds mean, median, standard deviation and variation.",
    "--benchmark_repetitions=7"};
inline constexpr Toggle benchmark_enable_random_interleaving = {
    "benchmark_enable_random_interleaving",
    "Runs the repetitions of all rows in random order, so that disturbances affect all rows alike.",
    "--benchmark_enable_random_interleaving"};
inline constexpr Toggle benchmark_report_aggregates_only = {
    "benchmark_report_aggregates_only", "With repetitions, prints only the rows with mean, median and so on.",
    "--benchmark_report_aggregates_only"};
inline constexpr Toggle benchmark_display_aggregates_only = {
    "benchmark_display_aggregates_only",
    "Like --benchmark_report_aggregates_only, but the file of --benchmark_out gets all rows.",
    "--benchmark_display_aggregates_only"};
inline constexpr Choice benchmark_format = {"benchmark_format", "console|json|csv",
                                            "The format of standard output.", "--benchmark_format=json",
                                            Format::console};
inline constexpr Text benchmark_out = {"benchmark_out", "FILE", "Also writes the rows to a file.",
                                       "--benchmark_out=results.json"};
inline constexpr Choice benchmark_out_format = {"benchmark_out_format", "console|json|csv",
                                                "The format of that file (json).",
                                                "--benchmark_out_format=csv", Format::json};
inline constexpr Text benchmark_color = {"benchmark_color", "auto|true|false",
                                         "Colours in the table; auto (the default): only on a terminal.",
                                         "--benchmark_color=false", "auto"};
inline constexpr Toggle benchmark_counters_tabular = {
    "benchmark_counters_tabular", "Prints each counter in its own column.", "--benchmark_counters_tabular"};
inline constexpr List benchmark_context = {"benchmark_context", "KEY=VALUE,...",
                                           "Texts that are added to the results.",
                                           "--benchmark_context=machine=lab3"};
inline constexpr Choice benchmark_time_unit = {"benchmark_time_unit",   "ns|us|ms|s",
                                               "Like --time_unit.",     "--benchmark_time_unit=us",
                                               benchmark::kMillisecond, benchmark::kNanosecond};

}  // namespace flag

inline constexpr const Flag* kBenchmarkFlags[] = {&flag::benchmark_filter,
                                                  &flag::benchmark_list_tests,
                                                  &flag::benchmark_min_time,
                                                  &flag::benchmark_min_warmup_time,
                                                  &flag::benchmark_repetitions,
                                                  &flag::benchmark_enable_random_interleaving,
                                                  &flag::benchmark_report_aggregates_only,
                                                  &flag::benchmark_display_aggregates_only,
                                                  &flag::benchmark_format,
                                                  &flag::benchmark_out,
                                                  &flag::benchmark_out_format,
                                                  &flag::benchmark_color,
                                                  &flag::benchmark_counters_tabular,
                                                  &flag::benchmark_context,
                                                  &flag::benchmark_time_unit};

// The values that this tool uses, and those for the library.
struct BenchmarkOptions {
  Format format = Format::console;
  std::string out;  // a file, or empty
  Format out_format = Format::json;
  double min_time = 0;      // seconds, or
  uint64_t iterations = 0;  // the number of calls; 0: by time
  bool display_aggregates_only = false;
  std::optional<benchmark::TimeUnit> unit;  // set if a flag gives it
  std::vector<std::string> handed_on;       // command line for Google Benchmark
};

// INVALID_ARGUMENT names the flag.
Result<BenchmarkOptions> benchmark_options(const Flags& flags);

}  // namespace halyard::tools
