// Which executables a device takes: formats that compilers are known to emit, or those asked about.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

struct FormatGrade {
  std::string format;
  std::string file;  // whose bytes were judged; "" where the format alone was
  uint32_t fit = HALYARD_FIT_NO;
  std::string reason;
};

// `asked` are formats, or FORMAT=FILE; none: the formats that are known. Fails where a file cannot be read.
Result<std::vector<FormatGrade>> grade_formats(halyard_device_t device,
                                               const std::vector<std::string>& asked);

// "native", "loadable", "recompile", "no".
std::string_view fit_name(uint32_t fit);

}  // namespace halyard::tools
