// The output of hal-info for people.
#pragma once

#include <string>
#include <vector>

#include "common/survey.h"
#include "grades.h"
#include "timing.h"

namespace halyard::tools {

std::string drivers_text(const Survey& survey);
std::string device_text(const DeviceInfo& device);
std::string devices_text(const std::vector<DeviceInfo>& devices);
std::string sharing_text(const std::vector<DeviceInfo>& devices);  // "" for fewer than two
std::string grades_text(const std::vector<FormatGrade>& grades);
// Describes the compiler for bytecode, or why there is none.
std::string compiler_text();
// A hint to use --explain; "" if nothing was refused.
std::string timing_text(const Timing& timing);
std::string refused_text(const Survey& survey);

// The names of set bits: "runs in caller, unified memory"; "bit 12" for a bit without a name.
std::vector<std::string> bit_names(uint64_t bits, const char* (*name)(uint32_t bit));

}  // namespace halyard::tools
