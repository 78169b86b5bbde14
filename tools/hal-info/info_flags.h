// The flags of hal-info.
#pragma once

#include "common/drivers.h"
#include "common/flags.h"

namespace halyard::tools::flag {

inline constexpr Toggle explain = {
    "explain",
    "Lists every place of the search for drivers, and every file found there, in order: taken, refused or "
    "skipped, and why. Each driver is tried in a separate process.",
    "--explain"};
inline constexpr Toggle json = {"json", "Prints JSON (docs/hal-info.md) instead of text.", "devices --json"};
inline constexpr Text replay_device = {
    "device", "URI",
    "replay, cut: the device to replay on. Default: the device on which each execution was captured.",
    "replay run.hycap --device=vulkan"};
inline constexpr Number execution = {"execution", "N",
                                     "print, replay, cut: one execution of the capture, counted from 0.",
                                     "print run.hycap --execution=3", HALYARD_EVERY_EXECUTION};
inline constexpr Number command = {"command", "N",
                                   "cut: the command to keep. replay: executes the commands up to this one, "
                                   "counted from 0, and compares the "
                                   "bytes that no later one may write. Needs --execution if the capture has "
                                   "several.",
                                   "cut run.hycap --execution=0 --command=17 --output=small.hycap",
                                   HALYARD_EVERY_COMMAND};
inline constexpr Text output = {"output", "FILE", "cut: the new capture.",
                                "cut run.hycap --execution=0 --command=17 --output=small.hycap"};
inline constexpr List executable = {
    "executable", "N=[FORMAT:]FILE",
    "replay, cut: executes FILE, in FORMAT (default: that of the captured code), instead of executable N of "
    "the "
    "capture. Functions are found by their names, else by their numbers. .vmasm is assembled.",
    "replay run.hycap --device=vulkan --executable=0=vulkan-spirv-fb:kernels.fb"};
inline constexpr Toggle benchmark = {
    "benchmark",
    "replay: measures each execution, or the one command of --command, instead of comparing bytes.",
    "replay run.hycap --benchmark"};
inline constexpr Duration benchmark_min_time = {"benchmark_min_time", "TIME",
                                                "The minimum time of a measurement (0.5s).",
                                                "replay run.hycap --benchmark --benchmark_min_time=2s"};
inline constexpr Toggle incomplete = {
    "incomplete",
    "print, replay, cut: accepts a capture that is truncated, for example because the program crashed.",
    "replay run.hycap --incomplete"};
inline constexpr Duration probe_timeout = {"timeout", "TIME", "The maximum time for trying a driver (10s).",
                                           "--timeout=60s"};

}  // namespace halyard::tools::flag
