// The flags that only vm-bench has, except those of Google Benchmark (benchmark_flags.h).
#pragma once

#include <benchmark/benchmark.h>

#include "common/flags.h"

namespace halyard::tools::flag {

// ---- Calls

inline constexpr Number batch = {"batch", "N",
                                 "One call does the function's work N times, so times are divided by N. "
                                 "Asynchronous functions are called N "
                                 "times before the wait for the last call.",
                                 "--batch=16", 1};
inline constexpr Number batch_size = {"batch_size", "N", "--batch under its name in other runners.",
                                      "--batch_size=16", 1};
inline constexpr Number batch_concurrency = {
    "batch_concurrency", "N",
    "The number of calls of an asynchronous function that are in flight at once. "
    "Each call waits for the call N before it (1).",
    "--batch_concurrency=4", 1};
inline constexpr Number threads = {
    "threads", "N",
    "Calls on N threads at once, each with its own context, with the same modules "
    "and devices. The time is that of all calls together.",
    "--threads=4", 1};
inline constexpr Choice time_unit = {
    "time_unit",
    "ns|us|ms|s",
    "The unit of times. Default: ms for calls, us for functions that repeat a "
    "dispatch and for all other rows.",
    "--time_unit=us",
    benchmark::kMillisecond,
    benchmark::kNanosecond};
inline constexpr Toggle print_statistics = {
    "print_statistics", "Prints the memory statistics of each device to standard error after the rows.",
    "--print_statistics"};

// ---- Another runner

inline constexpr Text against = {"against", "COMMAND",
                                 "Measures calls alternately with another runner, which gets the same "
                                 "module, function, inputs and devices, "
                                 "and prints the ratio of the medians. COMMAND is a shell command: the "
                                 "runner and its own flags. The runner "
                                 "must print the JSON of Google Benchmark.",
                                 "--against=iree-benchmark-module"};
inline constexpr Number rounds = {
    "rounds", "N", "How often both runners are measured: 5, the default, or more.", "--rounds=9", 5};

}  // namespace halyard::tools::flag
