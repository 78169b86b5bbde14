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
    "replay: the device to replay on. Default: the device on which each execution was captured.",
    "replay run.hycap --device=vulkan"};
inline constexpr Number execution = {"execution", "N",
                                     "print, replay: one execution of the capture, counted from 0.",
                                     "print run.hycap --execution=3", HALYARD_EVERY_EXECUTION};
inline constexpr Toggle incomplete = {
    "incomplete",
    "print, replay: accepts a capture that is truncated, for example because the program crashed.",
    "replay run.hycap --incomplete"};
inline constexpr Duration probe_timeout = {"timeout", "TIME", "The maximum time for trying a driver (10s).",
                                           "--timeout=60s"};

}  // namespace halyard::tools::flag
