// Grades of executables on a device: those of known compilers' formats, or of formats that the user names.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

struct FormatGrade {
  std::string format;
  std::string file;  // the file that was judged; "" if only the format was
  uint32_t fit = HALYARD_FIT_NO;
  std::string reason;
};

// `asked` are formats, or FORMAT=FILE; if it is empty, all known formats. Fails if a file cannot be read.
Result<std::vector<FormatGrade>> grade_formats(halyard_device_t device,
                                               const std::vector<std::string>& asked);

// "native", "loadable", "recompile", "no".
std::string_view fit_name(uint32_t fit);

}  // namespace halyard::tools
