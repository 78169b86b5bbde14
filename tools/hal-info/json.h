// The output of hal-info for programs. docs/hal-info.md describes the members. New members may be added; none
// is removed.
#pragma once

#include <string>
#include <vector>

#include "common/survey.h"
#include "grades.h"
#include "timing.h"

namespace halyard::tools {

std::string survey_json(const Survey& survey);  // drivers, devices, sharing
std::string drivers_json(const Survey& survey);
std::string devices_json(const std::vector<DeviceInfo>& devices);
std::string explanation_json(const Survey& survey);
std::string grades_json(const DeviceInfo& device, const std::vector<FormatGrade>& grades);
struct Answer {
  std::string category;
  std::string key;
  bool known = false;
  int64_t value = 0;
};
std::string timing_json(const Timing& timing);
std::string answer_json(const DeviceInfo& device, const Answer& answer);

}  // namespace halyard::tools
