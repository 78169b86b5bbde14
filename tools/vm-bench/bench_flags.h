// The flags that only vm-bench has, except those of Google Benchmark (benchmark_flags.h).
#pragma once

#include <benchmark/benchmark.h>

#include "common/flags.h"

namespace halyard::tools::flag {

// ---- Calls

inline constexpr Number batch = {
    "batch", "N",
    "One call does the function's work N times: times are divided by N. Asynchronous functions are called N "
    "times before the last call is waited for.",
    "--batch=16", 1};
inline constexpr Number batch_size = {"batch_size", "N", "The same, under its name in other runners.",
                                      "--batch_size=16", 1};
inline constexpr Number batch_concurrency = {"batch_concurrency", "N",
                                             "The number of calls of an asynchronous function that are in "
                                             "flight at once; each waits for the one N before it (1).",
                                             "--batch_concurrency=4", 1};
inline constexpr Number threads = {"threads", "N",
                                   "Calls from N threads at once, each in a context of its own, on the same "
                                   "modules and devices. The time is that of all calls together.",
                                   "--threads=4", 1};
inline constexpr Choice time_unit = {"time_unit",
                                     "ns|us|ms|s",
                                     "The unit of times. Without it: ms for calls, us for functions that "
                                     "repeat a dispatch and for all other rows.",
                                     "--time_unit=us",
                                     benchmark::kMillisecond,
                                     benchmark::kNanosecond};
inline constexpr Toggle print_statistics = {
    "print_statistics", "Prints the memory statistics of each device to standard error after the rows.",
    "--print_statistics"};

// ---- Another runner

inline constexpr Text against = {
    "against", "COMMAND",
    "Measures calls in turns with another runner, which gets the same module, function, inputs and devices, "
    "and prints the ratio of the medians. COMMAND is a program and flags for it alone, as for a shell; the "
    "program must print Google Benchmark's JSON.",
    "--against=iree-benchmark-module"};
inline constexpr Number rounds = {
    "rounds", "N", "The number of turns of each of the two: 5, the default, or more.", "--rounds=9", 5};

}  // namespace halyard::tools::flag
