// Grades of executables on a device: for the formats of known compilers, or for formats that the user names.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

struct FormatGrade {
  std::string format;
  std::string file;  // the graded file; "" if only the format was graded
  uint32_t fit = HALYARD_FIT_NO;
  std::string reason;
};

// `asked` contains formats, or FORMAT=FILE; if empty, all known formats are graded. Fails if a file cannot be
// read.
Result<std::vector<FormatGrade>> grade_formats(const Device& device, const std::vector<std::string>& asked);

// "native", "loadable", "recompile", "no".
std::string_view fit_name(uint32_t fit);

}  // namespace halyard::tools
