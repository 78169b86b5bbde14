// The verbs about captures (docs/captures.md): what is in one, and whether a device does the same again.
#pragma once

#include <string>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

inline constexpr Flag kDeviceFlag = {
    "device", FlagKind::value, "URI",
    "replay: the device to replay on. Left out: the one that each execution was captured on.",
    "replay run.hycap --device=vulkan"};
inline constexpr Flag kExecutionFlag = {"execution", FlagKind::value, "N",
                                        "print, replay: one execution of the capture, counted from 0.",
                                        "print run.hycap --execution=3"};
inline constexpr Flag kIncompleteFlag = {
    "incomplete", FlagKind::toggle, "",
    "print, replay: of a capture that is cut short, because the program that wrote it crashed, take what is "
    "there.",
    "replay run.hycap --incomplete"};

// What the capture holds, as text or JSON.
Result<std::string> capture_description(const Flags& flags, const std::string& path);
// Replays and prints what came of each execution. Exit status 1 where one differs or fails.
Result<int> replay_capture(const Flags& flags, const std::string& path);

}  // namespace halyard::tools
